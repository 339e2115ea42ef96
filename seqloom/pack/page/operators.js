// The operators of ONNX that the graphs are made of, each as (inputs, attributes, how many outputs, record)
// => outputs. Recurrences put their gates on record.

import {GRU, LSTM, RNN} from "./recurrences.js";
import {Tensor, axisOf, count, multiply, offsets, places, scalar, stretch, strides, take, vector} from "./tensor.js";

const KINDS = {1: Float32Array, 6: Int32Array, 7: Int32Array, 9: Uint8Array};

// --- number by number ---

function each(f) {
  return ([x]) => [new Tensor(x.dims, x.data.map(f))];
}

// Whether a shape is the end of another, so that its elements lie in the same order.
const isEnd = (short, long) => short.every((size, axis) => size === long[long.length - short.length + axis]);

function pairs(f, Kind = null) {
  return ([a, b]) => {
    const dims = stretch(a.dims, b.dims), total = count(dims), data = new (Kind ?? a.data.constructor)(total);
    if (count(a.dims) === total && b.data.length === 1) {
      const other = b.data[0];
      for (let i = 0; i < total; i++) data[i] = f(a.data[i], other);
    } else if (count(a.dims) === total && isEnd(b.dims, dims)) {  // the same row, again and again
      const width = b.data.length;
      for (let i = 0; i < total; i++) data[i] = f(a.data[i], b.data[i % width]);
    } else {
      const left = places(a.dims, dims), right = places(b.dims, dims);
      for (let i = 0; i < total; i++) data[i] = f(a.data[left[i]], b.data[right[i]]);
    }
    return [new Tensor(dims, data)];
  };
}

function where([condition, a, b]) {
  const dims = stretch(stretch(condition.dims, a.dims), b.dims), data = new a.data.constructor(count(dims));
  const [chosen, left, right] = [condition, a, b].map(one => places(one.dims, dims));
  for (let i = 0; i < data.length; i++) data[i] = condition.data[chosen[i]] ? a.data[left[i]] : b.data[right[i]];
  return [new Tensor(dims, data)];
}

// The error function: its series near zero, a continued fraction beyond.
export function erf(x) {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x, sum = x;
    for (let n = 1; n < 60 && Math.abs(term) > 1e-17; n++) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = 0;
  for (let k = 40; k > 0; k--) fraction = k / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / Math.sqrt(Math.PI) / (size + fraction));
}

// --- shapes ---

function reshape([x, wanted]) {
  const dims = Array.from(wanted.data, (size, axis) => size === 0 ? x.dims[axis] : size), open = dims.indexOf(-1);
  if (open >= 0) {
    dims[open] = 1;
    dims[open] = x.data.length === 0 ? 0 : x.data.length / count(dims);
  }
  return [new Tensor(dims, x.data)];
}

function transpose([x], {perm}) {
  const own = strides(x.dims), dims = perm.map(axis => x.dims[axis]);
  return [take(x, dims, offsets(dims, perm.map(axis => own[axis])))];
}

function unsqueeze([x, axes]) {
  const dims = [...x.dims], rank = dims.length + axes.data.length;
  for (const axis of Array.from(axes.data, one => one < 0 ? one + rank : one).sort((a, b) => a - b)) dims.splice(axis, 0, 1);
  return [new Tensor(dims, x.data)];
}

function squeeze([x, axes]) {
  const gone = new Set(Array.from(axes.data, axis => axisOf(axis, x.dims)));
  return [new Tensor(x.dims.filter((_, axis) => !gone.has(axis)), x.data)];
}

function flatten([x], {axis = 1}) {
  return [new Tensor([count(x.dims.slice(0, axis)), count(x.dims.slice(axis))], x.data)];
}

function slice([x, starts, ends, axes, steps]) {
  const dims = [...x.dims], own = strides(x.dims);
  let first = 0;
  axes.data.forEach((axis, i) => {
    const at = axisOf(axis, x.dims), size = x.dims[at], clip = place => Math.min(size, Math.max(0, place < 0 ? place + size : place));
    const begin = clip(starts.data[i]), step = steps.data[i];
    dims[at] = Math.max(0, Math.ceil((clip(ends.data[i]) - begin) / step));
    first += begin * own[at];
    own[at] *= step;
  });
  return [take(x, dims, offsets(dims, own, first))];
}

function split([x, sizes], {axis}, outputs) {
  const at = axisOf(axis, x.dims), own = strides(x.dims);
  const parts = sizes ? Array.from(sizes.data) : new Array(outputs).fill(x.dims[at] / outputs);
  let begin = 0;
  return parts.map(size => {
    const dims = x.dims.with(at, size), part = take(x, dims, offsets(dims, own, begin * own[at]));
    begin += size;
    return part;
  });
}

function concat(parts, {axis}) {
  const at = axisOf(axis, parts[0].dims), sizes = parts.map(part => part.dims[at]);
  const dims = parts[0].dims.with(at, sizes.reduce((a, b) => a + b, 0));
  const before = count(dims.slice(0, at)), after = count(dims.slice(at + 1)), data = new parts[0].data.constructor(count(dims));
  let place = 0;
  for (let row = 0; row < before; row++) {
    parts.forEach((part, i) => {
      const length = sizes[i] * after;
      data.set(part.data.subarray(row * length, (row + 1) * length), place);
      place += length;
    });
  }
  return [new Tensor(dims, data)];
}

function expand([x, wanted]) {
  const dims = stretch(x.dims, Array.from(wanted.data));
  return [take(x, dims, places(x.dims, dims))];
}

function pad([x, sides]) {
  const rank = x.dims.length, before = sides.data.subarray(0, rank), dims = x.dims.map((size, axis) => size + before[axis] + sides.data[rank + axis]);
  const own = strides(dims), data = new x.data.constructor(count(dims));
  const found = offsets(x.dims, own, own.reduce((sum, step, axis) => sum + step * before[axis], 0));
  for (let i = 0; i < found.length; i++) data[found[i]] = x.data[i];
  return [new Tensor(dims, data)];
}

// Rows (batch, time, …), each with its first elements, as many as it has, from the last to the first.
function reverseSequence([x, lengths]) {
  const [batch, time, ...rest] = x.dims, size = count(rest), data = x.data.slice();
  for (let row = 0; row < batch; row++) {
    for (let t = 0; t < lengths.data[row]; t++) {
      const from = (row * time + lengths.data[row] - 1 - t) * size;
      data.set(x.data.subarray(from, from + size), (row * time + t) * size);
    }
  }
  return [new Tensor(x.dims, data)];
}

function gather([table, indices]) {
  const width = count(table.dims.slice(1)), data = new table.data.constructor(indices.data.length * width);
  indices.data.forEach((index, i) => data.set(table.data.subarray(index * width, (index + 1) * width), i * width));
  return [new Tensor([...indices.dims, ...table.dims.slice(1)], data)];
}

// --- over an axis ---

function reduce(combine, first, finish = value => value) {
  return ([x, given], {axes = given ? Array.from(given.data) : null, keepdims = 1}) => {
    const over = new Set(axes.map(axis => axisOf(axis, x.dims)));
    const kept = x.dims.map((size, axis) => over.has(axis) ? 1 : size), total = new Float64Array(count(kept)).fill(first);
    const where_to = places(kept, x.dims), number = count([...over].map(axis => x.dims[axis]));
    for (let i = 0; i < x.data.length; i++) total[where_to[i]] = combine(total[where_to[i]], x.data[i]);
    const data = x.data.constructor.from(total, value => finish(value, number));
    return [new Tensor(keepdims ? kept : kept.filter((_, axis) => !over.has(axis)), data)];
  };
}

// Over the last axis: f(numbers of a row, where its results go).
function rows(x, f) {
  const width = x.dims.at(-1), data = new Float32Array(x.data.length);
  for (let begin = 0; begin < x.data.length; begin += width) f(x.data.subarray(begin, begin + width), data.subarray(begin, begin + width));
  return new Tensor(x.dims, data);
}

function softmax([x]) {
  return [rows(x, (row, out) => {
    let most = -Infinity, sum = 0;
    for (const value of row) most = Math.max(most, value);
    for (let i = 0; i < row.length; i++) sum += Math.exp(row[i] - most);
    for (let i = 0; i < row.length; i++) out[i] = Math.exp(row[i] - most) / sum;
  })];
}

function layerNorm([x, scale, shift], {epsilon}) {
  return [rows(x, (row, out) => {
    let mean = 0, variance = 0;
    for (const value of row) mean += value / row.length;
    for (const value of row) variance += (value - mean) ** 2 / row.length;
    const factor = 1 / Math.sqrt(variance + epsilon);
    for (let i = 0; i < row.length; i++) out[i] = (row[i] - mean) * factor * scale.data[i] + (shift ? shift.data[i] : 0);
  })];
}

function argMax([x], {keepdims = 1}) {
  const width = x.dims.at(-1), best = new Int32Array(x.data.length / width);
  for (let row = 0; row < best.length; row++) best[row] = argmax(x.data.subarray(row * width, (row + 1) * width));
  return [new Tensor(keepdims ? x.dims.with(-1, 1) : x.dims.slice(0, -1), best)];
}

export function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

// Of all numbers of the last axis: sorted, and where each was.
function topK([x], {largest}) {
  const order = new Int32Array(x.data.length), sign = largest ? -1 : 1;
  const sorted = rows(x, (row, out) => {
    const begin = row.byteOffset / 4 - x.data.byteOffset / 4;
    Array.from(row.keys()).sort((a, b) => sign * (row[a] - row[b])).forEach((from, to) => {
      out[to] = row[from];
      order[begin + to] = from;
    });
  });
  return [sorted, new Tensor(x.dims, order)];
}

// --- products ---

function matMul([a, b]) {
  const [rowsA, inner] = a.dims.slice(-2), columns = b.dims.at(-1);
  if (b.dims.length === 2) {
    const out = new Float32Array(a.data.length / inner * columns);
    multiply(a.data, b.data, out, a.data.length / inner, inner, columns);
    return [new Tensor([...a.dims.slice(0, -1), columns], out)];
  }
  const batch = stretch(a.dims.slice(0, -2), b.dims.slice(0, -2)), total = count(batch);
  const left = places(a.dims.slice(0, -2), batch), right = places(b.dims.slice(0, -2), batch), out = new Float32Array(total * rowsA * columns);
  for (let i = 0; i < total; i++) {
    multiply(a.data, b.data, out, rowsA, inner, columns, left[i] * rowsA * inner, right[i] * inner * columns, i * rowsA * columns);
  }
  return [new Tensor([...batch, rowsA, columns], out)];
}

// Over one axis or two; an image is cut into squares that do not overlap.
function conv([x, kernel, bias], {pads = [], strides: steps = []}) {
  const flat = x.dims.length === 3, [batch, inputs] = x.dims, [outputs, , ...window] = kernel.dims;
  const [height, width] = flat ? [1, x.dims[2]] : x.dims.slice(2), [down, across] = flat ? [1, window[0]] : window;
  const [stepDown, stepAcross] = flat ? [1, steps[0] ?? 1] : [steps[0] ?? 1, steps[1] ?? 1];
  const before = flat ? pads[0] ?? 0 : 0, after = flat ? pads[1] ?? 0 : 0;
  const tall = Math.floor((height - down) / stepDown) + 1, wide = Math.floor((width + before + after - across) / stepAcross) + 1;
  const out = new Float32Array(batch * outputs * tall * wide);
  for (let b = 0, place = 0; b < batch; b++) for (let o = 0; o < outputs; o++) for (let r = 0; r < tall; r++) for (let c = 0; c < wide; c++, place++) {
    let sum = bias ? bias.data[o] : 0;
    for (let i = 0; i < inputs; i++) for (let u = 0; u < down; u++) for (let v = 0; v < across; v++) {
      const column = c * stepAcross + v - before;
      if (column < 0 || column >= width) continue;
      sum += x.data[((b * inputs + i) * height + r * stepDown + u) * width + column] * kernel.data[((o * inputs + i) * down + u) * across + v];
    }
    out[place] = sum;
  }
  return [new Tensor([batch, outputs, ...(flat ? [wide] : [tall, wide])], out)];
}

function range([start, end, step]) {
  const values = [];
  for (let value = start.data[0]; value < end.data[0]; value += step.data[0]) values.push(value);
  return [vector(values)];
}

export const sigmoid = x => 1 / (1 + Math.exp(-x));

export const OPERATORS = {
  Abs: each(Math.abs),
  Add: pairs((a, b) => a + b),
  And: pairs((a, b) => a && b),
  ArgMax: argMax,
  Cast: ([x], {to}) => [new Tensor(x.dims, KINDS[to].from(x.data))],
  Concat: concat,
  ConstantOfShape: ([dims], {value}) => [new Tensor(Array.from(dims.data), new value.data.constructor(count(Array.from(dims.data))).fill(value.data[0]))],
  Conv: conv,
  Cos: each(Math.cos),
  Div: pairs((a, b) => a / b),
  Equal: pairs((a, b) => a === b, Uint8Array),
  Erf: each(erf),
  Exp: each(Math.exp),
  Expand: expand,
  Flatten: flatten,
  GRU,
  Gather: gather,
  Greater: pairs((a, b) => a > b, Uint8Array),
  GreaterOrEqual: pairs((a, b) => a >= b, Uint8Array),
  Identity: ([x]) => [x],
  LSTM,
  LayerNormalization: layerNorm,
  Less: pairs((a, b) => a < b, Uint8Array),
  LessOrEqual: pairs((a, b) => a <= b, Uint8Array),
  MatMul: matMul,
  Max: pairs(Math.max),
  Mod: pairs((a, b) => (a % b + b) % b),
  Mul: pairs((a, b) => a * b),
  Neg: each(x => -x),
  Pad: pad,
  RNN,
  Range: range,
  ReduceMax: reduce(Math.max, -Infinity),
  ReduceMean: reduce((a, b) => a + b, 0, (sum, number) => sum / number),
  ReduceSum: reduce((a, b) => a + b, 0),
  Relu: each(x => Math.max(0, x)),
  Reshape: reshape,
  ReverseSequence: reverseSequence,
  Shape: ([x], {start = 0, end = x.dims.length}) => [vector(x.dims.slice(start, end))],
  Sigmoid: each(sigmoid),
  Sin: each(Math.sin),
  Slice: slice,
  Softmax: softmax,
  Softplus: each(x => x > 20 ? x : Math.log1p(Math.exp(x))),
  Split: split,
  Sqrt: each(Math.sqrt),
  Squeeze: squeeze,
  Sub: pairs((a, b) => a - b),
  Tanh: each(Math.tanh),
  TopK: topK,
  Transpose: transpose,
  Unsqueeze: unsqueeze,
  Where: where,
};
