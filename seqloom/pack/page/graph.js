// Graphs: read from the page, and run node by node.

import {OPERATORS} from "./operators.js";
import {Tensor, count} from "./tensor.js";

const KINDS = {float32: Float32Array, int32: Int32Array, bool: Uint8Array};

function bytes(base64) {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

// Numbers as they are, or whole numbers from -127 to 127 with a scale for each place of one axis.
function constant({dims, kind, at, axis, scales}, memory) {
  const total = count(dims);
  if (kind !== "int8") {
    const Kind = KINDS[kind];
    return new Tensor(dims, new Kind(memory.slice(at, at + total * Kind.BYTES_PER_ELEMENT).buffer));
  }
  const whole = new Int8Array(memory.slice(at, at + total).buffer), inner = count(dims.slice(axis + 1)), places = dims[axis];
  const factors = new Float32Array(memory.slice(scales, scales + 4 * places).buffer), data = new Float32Array(total);
  for (let i = 0; i < total; i++) data[i] = whole[i] * factors[Math.floor(i / inner) % places];
  return new Tensor(dims, data);
}

export function openGraphs({graphs, constants}, weights) {
  const memory = bytes(weights), known = constants.map(one => constant(one, memory));
  return Object.fromEntries(Object.entries(graphs).map(([name, graph]) => [name, open(name, graph, known)]));
}

// What depends on constants alone is computed once; the rest becomes a function of the inputs.
function open(title, graph, known) {
  const fixed = Object.create(null), nodes = [];
  for (const [name, number] of Object.entries(graph.constants)) fixed[name] = known[number];
  for (const node of graph.nodes) {
    prepare(node, known);
    if (node.op !== "Scan" && node.inputs.length && node.inputs.every(name => !name || name in fixed)) run([node], fixed);
    else nodes.push(node);
  }
  return (inputs, record = null) => {
    const values = Object.assign(Object.create(fixed), inputs);
    run(nodes, values, record && {...record, graph: title});
    return Object.fromEntries(graph.outputs.map(name => [name, values[name]]));
  };
}

// Attributes that are tensors refer to constants.
function prepare(node, known) {
  if (node.attributes.value !== undefined) node.attributes.value = known[node.attributes.value];
  node.attributes.body?.nodes.forEach(one => prepare(one, known));
}

function run(nodes, values, record = null) {
  for (const {op, inputs, outputs, attributes, name} of nodes) {
    const read = inputs.map(one => one ? values[one] : undefined);
    const made = op === "Scan" ? scan(read, attributes, values, record) : OPERATORS[op](read, attributes, outputs.length, record);
    if (record && op === "Softmax") record.attention.push({graph: record.graph, name, place: outputs[0], ...made[0]});
    outputs.forEach((one, place) => { values[one] = made[place]; });
  }
}

// A loop over axis 1: the body gives the next state, and what is put in a row.
function scan(read, {body, count: over, reverse}, around, record) {
  const kept = read.length - over;
  let state = read.slice(0, kept);
  const lists = read.slice(kept), time = lists[0].dims[1], emitted = body.outputs.slice(kept).map(() => new Array(time));
  const element = ({dims: [batch, , ...rest], data}, t) => {
    const size = count(rest), out = new data.constructor(batch * size);
    for (let row = 0; row < batch; row++) out.set(data.subarray((row * time + t) * size, (row * time + t + 1) * size), row * size);
    return new Tensor([batch, ...rest], out);
  };
  for (let i = 0; i < time; i++) {
    const t = reverse ? time - 1 - i : i, values = Object.create(around);
    [...state, ...lists.map(list => element(list, t))].forEach((value, place) => { values[body.inputs[place]] = value; });
    run(body.nodes, values, record);
    const results = body.outputs.map(name => values[name]);
    state = results.slice(0, kept);
    results.slice(kept).forEach((value, place) => { emitted[place][t] = value; });
  }
  return [...state, ...emitted.map(join)];
}

function join(steps) {
  const [batch, ...rest] = steps[0].dims, size = count(rest), data = new steps[0].data.constructor(batch * steps.length * size);
  steps.forEach((step, t) => {
    for (let row = 0; row < batch; row++) data.set(step.data.subarray(row * size, (row + 1) * size), (row * steps.length + t) * size);
  });
  return new Tensor([batch, steps.length, ...rest], data);
}
