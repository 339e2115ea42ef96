// Arrays of numbers with a shape. Whole numbers are Int32Array, truths Uint8Array, all others Float32Array.

export class Tensor {
  constructor(dims, data) {
    this.dims = dims;
    this.data = data;
  }
}

export const count = dims => dims.reduce((product, size) => product * size, 1);
export const scalar = (value, Kind = Float32Array) => new Tensor([], Kind.of(value));
export const vector = (values, Kind = Int32Array) => new Tensor([values.length], Kind.from(values));
export const axisOf = (axis, dims) => axis < 0 ? axis + dims.length : axis;

// How far apart neighbors along each axis lie.
export function strides(dims) {
  const steps = new Array(dims.length);
  for (let axis = dims.length - 1, step = 1; axis >= 0; axis--) {
    steps[axis] = step;
    step *= dims[axis];
  }
  return steps;
}

// The shape that two shapes stretch to: axes of length one are repeated.
export function stretch(a, b) {
  const rank = Math.max(a.length, b.length), dims = new Array(rank);
  for (let axis = 1; axis <= rank; axis++) {
    const one = a[a.length - axis] ?? 1, other = b[b.length - axis] ?? 1;
    if (one !== other && one !== 1 && other !== 1) throw new Error(`shapes ${a} and ${b} do not fit`);
    dims[rank - axis] = one === 1 ? other : one;
  }
  return dims;
}

// Where each element of a stretched shape lies in a tensor of shape `dims`: a list of offsets.
export function places(dims, stretched) {
  const shift = stretched.length - dims.length, own = strides(dims), steps = stretched.map((_, axis) =>
    axis < shift || dims[axis - shift] === 1 ? 0 : own[axis - shift]);
  return offsets(stretched, steps);
}

// Offsets of all elements of a shape in order, for these steps along its axes.
export function offsets(dims, steps, first = 0) {
  const total = count(dims), found = new Int32Array(total), at = new Int32Array(dims.length);
  for (let element = 0, offset = first; element < total; element++) {
    found[element] = offset;
    for (let axis = dims.length - 1; axis >= 0; axis--) {
      offset += steps[axis];
      if (++at[axis] < dims[axis]) break;
      offset -= steps[axis] * dims[axis];
      at[axis] = 0;
    }
  }
  return found;
}

// The elements at these offsets, as a tensor of another shape.
export function take(tensor, dims, found) {
  const data = new tensor.data.constructor(found.length);
  for (let element = 0; element < found.length; element++) data[element] = tensor.data[found[element]];
  return new Tensor(dims, data);
}

// The product of matrices (rows, inner) and (inner, columns), added to `out`. Offsets say where each begins.
export function multiply(a, b, out, rows, inner, columns, fromA = 0, fromB = 0, fromOut = 0) {
  const sums = new Float64Array(columns);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let k = 0; k < inner; k++) {
      const value = a[fromA + row * inner + k], begin = fromB + k * columns;
      if (value === 0) continue;
      for (let column = 0; column < columns; column++) sums[column] += value * b[begin + column];
    }
    for (let column = 0; column < columns; column++) out[fromOut + row * columns + column] += sums[column];
  }
}
