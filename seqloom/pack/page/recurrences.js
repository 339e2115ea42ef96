// The recurrent operators of ONNX: inputs (time, batch, features), weights and biases with the gates one after another.
// Only forwards or only backwards; backwards, each row begins at its own last element.

import {Tensor, multiply} from "./tensor.js";

const APPLIED = {Sigmoid: x => 1 / (1 + Math.exp(-x)), Tanh: Math.tanh, Relu: x => Math.max(0, x)};

// (rows, columns) of a weight to (columns, rows), as products read it; once for each weight.
const turned = new WeakMap();
function turn({data, dims: [, rows, columns]}) {
  if (!turned.has(data)) {
    const out = new Float32Array(data.length);
    for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) out[column * rows + row] = data[row * columns + column];
    turned.set(data, out);
  }
  return turned.get(data);
}

// Every step of every row: step(row of products of the input, batch row, state) changes the state and gives named gates.
function loop(inputs, {hidden_size: size, direction}, entries, name, record, step) {
  const [x, W, , , lengths] = inputs, [time, batch, features] = x.dims, width = W.dims[1], back = direction === "reverse";
  const read = new Float32Array(time * batch * width), y = new Float32Array(time * batch * size), gates = {};
  multiply(x.data, turn(W), read, time * batch, features, width);
  const state = inputs.slice(5, 5 + entries).map(one => Float32Array.from(one.data));
  const tape = record ? gates : null;
  for (let row = 0; row < batch; row++) {
    const length = lengths ? lengths.data[row] : time, own = state.map(one => one.subarray(row * size, (row + 1) * size));
    for (let i = 0; i < length; i++) {
      const t = back ? length - 1 - i : i, at = (t * batch + row) * width;
      step(read.subarray(at, at + width), own, tape && ((gate, unit, value) => {
        (tape[gate] ??= new Float32Array(time * batch * size))[(t * batch + row) * size + unit] = value;
      }));
      y.set(own[0], (t * batch + row) * size);
    }
  }
  record?.gates.push({name, back, time, batch, size, gates});
  return [new Tensor([time, 1, batch, size], y), ...state.map(one => new Tensor([1, batch, size], one))];
}

// What the state adds to the gates: h (size) times R, with the biases of both sides.
function product(h, R, width, size) {
  const out = new Float32Array(width);
  multiply(h, turn(R), out, 1, size, width);
  return out;
}

export function LSTM(inputs, attributes, outputs, record) {
  const [, , R, B, , , , P] = inputs, {hidden_size: n, activations = ["Sigmoid", "Tanh", "Tanh"], input_forget = 0} = attributes;
  const [gate, candidate, output] = activations.map(one => APPLIED[one]), peep = (part, unit) => P ? P.data[part * n + unit] : 0;
  return loop(inputs, attributes, 2, "LSTM", record, (x, [h, c], note) => {
    const s = product(h, R, 4 * n, n), bias = part => B ? B.data[part] + B.data[4 * n + part] : 0;
    for (let u = 0; u < n; u++) {
      const sum = part => x[part * n + u] + s[part * n + u] + bias(part * n + u), old = c[u];
      const i = gate(sum(0) + peep(0, u) * old), f = input_forget ? 1 - i : gate(sum(2) + peep(2, u) * old);
      c[u] = f * old + i * candidate(sum(3));
      const o = gate(sum(1) + peep(1, u) * c[u]);
      h[u] = o * output(c[u]);
      if (note) for (const [name, value] of [["input gate", i], ["forget gate", f], ["output gate", o], ["cell state", c[u]]]) note(name, u, value);
    }
  });
}

export function GRU(inputs, attributes, outputs, record) {
  const [, , R, B] = inputs, {hidden_size: n, linear_before_reset: late = 0} = attributes, {Sigmoid: gate, Tanh: candidate} = APPLIED;
  const bias = (side, part) => B ? B.data[side * 3 * n + part] : 0;
  return loop(inputs, attributes, 1, "GRU", record, (x, [h], note) => {
    const s = product(h, R, 3 * n, n), z = new Float32Array(n), r = new Float32Array(n);
    for (let u = 0; u < n; u++) {
      z[u] = gate(x[u] + s[u] + bias(0, u) + bias(1, u));
      r[u] = gate(x[n + u] + s[n + u] + bias(0, n + u) + bias(1, n + u));
    }
    const reset = late ? s : product(h.map((value, u) => r[u] * value), R, 3 * n, n);
    for (let u = 0; u < n; u++) {
      const at = 2 * n + u, inner = late ? r[u] * (s[at] + bias(1, at)) : reset[at] + bias(1, at);
      h[u] = (1 - z[u]) * candidate(x[at] + inner + bias(0, at)) + z[u] * h[u];
      if (note) for (const [name, value] of [["update gate", z[u]], ["reset gate", r[u]], ["hidden state", h[u]]]) note(name, u, value);
    }
  });
}

export function RNN(inputs, attributes, outputs, record) {
  const [, , R, B] = inputs, {hidden_size: n, activations = ["Tanh"]} = attributes, apply = APPLIED[activations[0]];
  return loop(inputs, attributes, 1, "RNN", record, (x, [h], note) => {
    const s = product(h, R, n, n);
    for (let u = 0; u < n; u++) {
      h[u] = apply(x[u] + s[u] + (B ? B.data[u] + B.data[n + u] : 0));
      note?.("hidden state", u, h[u]);
    }
  });
}
