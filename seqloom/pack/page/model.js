// From what a person types to what the run answers with the likeliest token each time, and what is behind it.

import {argmax, sigmoid} from "./operators.js";
import {Tensor, count} from "./tensor.js";
import {decode, elements, makeEncoder, nameOf} from "./texts.js";

const UNKNOWN = 1, START = 2, END = 3;

export class Model {
  constructor({fields, tokenizers, longest}, graphs) {
    Object.assign(this, {fields, graphs, longest: longest ?? undefined, source: fields.source, target: fields.target});
    const side = this.source ?? this.target;
    this.reads = fields.levels ? "series" : ["numbers", "image", "frames"].includes(side.kind) ? side.kind : "text";
    this.encode = this.reads === "text" ? makeEncoder(side, tokenizers[this.source ? "source" : "target"]) : null;
    this.kind = fields.levels ? "forecast" : graphs.model ? this.target.kind
      : graphs.encoder ? this.target.kind === "image tokens" ? "drawing" : "text"
      : this.target.kind === "frames" ? "frames" : "next";
  }

  // The answers to one input, best first, as `seqloom predict --json` has them, and what was seen on the way.
  // `tag` names a language or style, where the run has such; `times` are those of a series.
  answer(input, {tag = null, times = null} = {}) {
    const seen = {attention: [], gates: []}, predictions = ANSWERS[this.kind](this, input, seen, {tag, times});
    return {predictions, seen};
  }

  // Names of what is read.
  names(input) {
    const side = this.source ?? this.target;
    if (this.reads !== "text") return Array.isArray(input) ? input.map((_, place) => String(place + 1)) : [];
    if (["listed", "spelled"].includes(side.kind)) return elements(input);
    if (this.kind === "next") return start(this, input).map(token => nameOf(side, token));
    return this.encode(input).slice(0, this.longest).map(token => nameOf(side, token));
  }
}

// --- reading ---

const whole = (dims, values) => new Tensor(dims, Int32Array.from(values));

// A batch of one sequence, which is at least one element wide.
function batch({fields}, elements) {
  const length = elements.length, deep = fields.element, width = count(deep), Kind = fields.source?.kind === "numbers" ? Float32Array : Int32Array;
  const data = length ? Kind.from(elements.flat()) : new Kind(width);
  return {inputs: new Tensor([1, Math.max(1, length), ...deep], data), lengths: whole([1], [length])};
}

function read(model, input, tag) {
  if (model.reads === "image") return {inputs: pixels(model.source, input)};
  const found = (model.reads === "numbers" ? steps(model, input) : model.encode(input)).slice(0, model.longest);
  return batch(model, tag === null ? found : [model.source.symbols.length + model.fields.tag.names.indexOf(tag), ...found]);
}

function steps({source: {mean, spread}, fields}, rows) {
  const last = mean.map(() => 0);
  return rows.map((row, time) => {
    const values = [row].flat(), known = values.map(one => one !== null && !Number.isNaN(one));
    const scaled = values.map((value, i) => known[i] ? (Math.fround(value) - Math.fround(mean[i])) / Math.fround(spread[i]) : 0);
    if (!fields.whole) return scaled;
    const since = last.map(before => time - before);
    known.forEach((there, i) => { if (there) last[i] = time; });
    return [...scaled, ...known.map(Number), ...since];
  });
}

function pixels({shape: [height, width, channels], mean, spread}, image) {
  const flat = image.flat(Infinity), data = new Float32Array(flat.length), of = (list, c) => Array.isArray(list) ? list[c % list.length] : list;
  flat.forEach((value, i) => {
    const c = i % channels;
    data[c * height * width + Math.floor(i / channels)] = (value / 255 - of(mean, c)) / of(spread, c);
  });
  return new Tensor([1, channels, height, width], data);
}

// --- answering ---

function likelihoods(logits) {
  const most = Math.max(...logits), powers = Array.from(logits, one => Math.exp(one - most)), sum = powers.reduce((a, b) => a + b, 0);
  return powers.map(one => one / sum);
}

function label(model, input, record) {
  const chances = likelihoods(model.graphs.model(read(model, input, null), record).logits.data);
  return model.target.names.map((output, place) => ({output, probability: chances[place]})).sort((a, b) => b.probability - a.probability);
}

function labels(model, input, record) {
  const {data} = model.graphs.model(read(model, input, null), record).logits, likely = model.target.names.filter((_, i) => data[i] > 0);
  const probabilities = Object.fromEntries(model.target.names.map((name, place) => [name, sigmoid(data[place])]));
  return [{output: likely.sort((a, b) => a < b ? -1 : 1).join(", ") || "-", probabilities}];
}

function number(model, input, record) {
  const {mean, spread} = model.graphs.model(read(model, input, null), record), value = mean.data[0] * model.target.spread + model.target.mean;
  return [{output: rounded(value), value, spread: spread.data[0] * model.target.spread}];
}

// Four digits, as Python's :.4g writes them.
function rounded(value) {
  const [digits, power] = value.toExponential(3).split("e"), exponent = Number(power);
  if (exponent < -4 || exponent >= 4) {
    return `${digits.replace(/\.?0+$/, "")}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  return String(Number(value.toPrecision(4)));
}

function tags(model, input, record) {
  const all = model.reads === "numbers" ? steps(model, input) : model.encode(input), most = model.fields.max_length, names = model.target.names, found = [];
  for (let begin = 0; begin < all.length; begin += most) {
    const piece = all.slice(begin, begin + most), {data} = model.graphs.model(batch(model, piece), record).logits, width = names.length;
    const scores = piece.map((_, place) => data.subarray(place * width, (place + 1) * width));
    found.push(...(model.fields.crf ? bestPath(scores, model.fields.crf) : scores.map(argmax)).map(tag => names[tag]));
  }
  const words = model.reads === "text" ? elements(input) : [];
  return [{output: words.length ? words.map((word, place) => `${word}/${found[place]}`).join(" ") : found.join(" "), words, tags: found}];
}

// Viterbi: a score for each tag, for each pair of neighbors, and for either end.
function bestPath(scores, {pairs, first, last}) {
  const worth = [scores[0].map((score, tag) => score + first[tag])];
  for (const score of scores.slice(1)) {
    const before = worth.at(-1);
    worth.push(score.map((own, tag) => Math.max(...Array.from(before, (value, from) => Math.fround(value + Math.fround(pairs[from][tag] + own))))));
  }
  const path = [argmax(worth.at(-1).map((value, tag) => value + last[tag]))];
  for (const before of worth.slice(0, -1).reverse()) path.unshift(argmax(before.map((value, tag) => value + pairs[tag][path[0]])));
  return path;
}

// One step: what comes after each of these elements, and what is known then.
export function step(model, inputs, known, record = null) {
  const outputs = model.graphs.decoder({inputs, ...known}, record), after = {...known};
  for (const [name, value] of Object.entries(outputs)) if (name.startsWith("next.")) after[name.replace("next", "state")] = value;
  return [outputs.logits, after];
}

// The likeliest token each time, up to the end.
function write(model, known, record) {
  const {banned, end, max_length: most} = model.fields, tokens = [], logs = [];
  for (let last = START; tokens.length < most;) {
    const [{data}, after] = step(model, whole([1, 1], [last]), known, record);
    for (const token of banned) data[token] = -Infinity;
    known = after;
    last = argmax(data);
    logs.push(Math.log(likelihoods(data)[last]));
    if (last === end) break;
    tokens.push(last);
  }
  return {tokens, logs};
}

function text(model, input, record, {tag}) {
  const {tokens, logs} = write(model, model.graphs.encoder(read(model, input, tag), record), record);
  return [{output: decode(model.target, tokens), tokens: tokens.map(token => nameOf(model.target, token)), logs}];
}

function drawing(model, input, record) {
  const {squares, side, size: [height, width]} = model.target, across = Math.ceil(width / side);
  const {tokens} = write(model, model.graphs.encoder(read(model, input, null), record), record);
  const bytes = tokens.map(token => squares[token - 4].match(/../g).map(pair => parseInt(pair, 16))), channels = bytes[0].length / side ** 2;
  const pixels = Array.from({length: height}, (_, y) => Array.from({length: width}, (_, x) => {
    const square = bytes[Math.floor(y / side) * across + Math.floor(x / side)], at = ((y % side) * side + x % side) * channels;
    return square.slice(at, at + channels);
  }));
  const shade = pixel => " \u2591\u2592\u2593\u2588"[Math.floor(pixel.reduce((a, b) => a + b, 0) / channels / 256 * 5)].repeat(2);
  return [{output: pixels.map(row => row.map(shade).join("")).join("\n"), pixels}];
}

// What knows no more reads half of its window.
const recent = (all, window) => window && all.length >= window ? all.slice(-Math.max(1, Math.floor(window / 2))) : all;
const begin = model => model.graphs.start({rows: whole([1], [1])});

function start(model, input) {
  const ids = model.encode(input);
  return recent(model.fields.documents ? [START, ...ids] : ids.length ? ids : [model.fields.begin], model.fields.window);
}

// Every token that may come next, with its log-probability; an unknown one is no answer.
function next(model, input, record) {
  const ids = start(model, input), [{data, dims}] = step(model, whole([1, ids.length], ids), begin(model), record);
  const chances = likelihoods(data.subarray(-dims.at(-1))).map((chance, token) => ({token, output: model.target.names[token], score: Math.log(chance)}));
  return chances.filter(one => one.token !== UNKNOWN).sort((a, b) => b.score - a.score || a.token - b.token);
}

// Goes on with a text, token by token: gives the text so far after each. A token that is drawn by chance is `draw`n from
// the log-probabilities.
export function* continueText(model, input, most, draw) {
  const ids = start(model, input), written = [];
  let [{data, dims}, known] = step(model, whole([1, ids.length], ids), begin(model));
  while (written.length < most) {
    const logs = likelihoods(data.subarray(-dims.at(-1))).map((chance, token) => token === UNKNOWN ? -Infinity : Math.log(chance)), token = draw(logs);
    if (token === END) return;
    written.push(token);
    yield decode(model.target, written);
    [{data, dims}, known] = step(model, whole([1, 1], [token]), known);
    if (model.fields.window && ids.length + written.length >= model.fields.window) return;
  }
}

function frames(model, input, record) {
  const {lowest, window} = model.fields, keys = model.target.keys, lines = input.trim() ? input.trim().split(/\r?\n/) : [];
  const read = recent([new Array(keys).fill(1), ...lines.map(line => {
    const frame = new Array(keys).fill(0);
    for (const pitch of line.replaceAll("-", " ").split(/\s+/).filter(one => one)) frame[Number(pitch) - lowest] = 1;
    return frame;
  })], window);
  const [{data}] = step(model, new Tensor([1, read.length, keys], Float32Array.from(read.flat())), begin(model), record), logits = data.subarray(-keys);
  const on = Array.from(logits.keys()).filter(key => logits[key] > 0).map(key => lowest + key);
  return [{output: on.join(" ") || "-"}];
}

// --- forecasts ---

const DAY = 86_400_000;

// Sines and cosines of the hour, the weekday and the day of the year, as far as the spacing shows them.
function calendar(times, {calendar: wanted, context}) {
  if (!wanted) return new Array(context).fill([]);
  const moments = times.slice(-context).map(Date.parse), gaps = moments.slice(1).map((one, i) => one - moments[i]).sort((a, b) => a - b);
  const middle = gaps.length / 2, spacing = gaps.length % 2 ? gaps[Math.floor(middle)] : (gaps[middle - 1] + gaps[middle]) / 2;
  return moments.map(moment => {
    const year = new Date(moment).getUTCFullYear(), first = Date.UTC(year), week = moment - Date.UTC(1970, 0, 5);
    const shares = [week % DAY / DAY, week % (7 * DAY) / (7 * DAY), (moment - first) / (Date.UTC(year + 1) - first)];
    return shares.flatMap((share, i) => spacing < [1, 7, 365][i] * DAY ? [Math.sin(2 * Math.PI * share), Math.cos(2 * Math.PI * share)] : []);
  });
}

// How a column is read: its values without gaps, which of them are known, and how long ago one was.
function column(rows, c, {mean, spread, relative}) {
  const values = rows.map(row => row[c] === null || Number.isNaN(row[c]) ? NaN : Math.fround((row[c] - mean[c]) / spread[c]));
  const known = values.map(value => !Number.isNaN(value)), seen = values.filter((_, i) => known[i]);
  let level = 0, scale = 1;
  if (relative === "last") level = seen.at(-1) ?? 0;
  if (relative === "mean") {
    level = seen.reduce((a, b) => a + b, 0) / Math.max(1, seen.length);
    scale = Math.sqrt(seen.reduce((sum, value) => sum + (value - level) ** 2, 0) / Math.max(1, seen.length) + 1e-4);
  }
  let last = 0, latest = 0;
  const filled = [], ages = [];
  values.forEach((value, i) => {
    if (known[i]) [last, latest] = [(value - level) / scale, i + 1];
    filled.push(last);
    ages.push(Math.log1p(i + 1 - latest));
  });
  return {parts: [filled, known.map(Number), ages], level, scale};
}

function forecast(model, input, record, {times}) {
  const {fields} = model, {context, variables: number, span, gaps, decays, alone, levels, names, mean, spread} = fields;
  const rows = input.slice(-context).map(row => [row].flat()), columns = rows[0].map((_, c) => column(rows, c, fields)), when = calendar(times, fields);
  const windows = (alone ? names.map((_, c) => [c]) : [names.map((_, c) => c)]).map(own => {
    const chosen = [...own.map(c => columns[c]), ...columns.slice(number)];
    return rows.map((_, t) => {
      const read = (gaps || decays ? [0, 1, 2] : [0]).map(part => chosen.map(one => one.parts[part][t]));
      if (!decays) return [...read.flat(), ...when[t]];
      return read.flatMap((part, i) => [...part, ...when[t].map(value => [value, 1, 0][i])]);
    });
  });
  const length = rows.length / span, inputs = new Tensor([windows.length, length, windows[0][0].length * span], Float32Array.from(windows.flat(2)));
  const found = Object.values(model.graphs.model({inputs, lengths: whole([windows.length], windows.map(() => length))}, record))[0];
  const depth = levels.length || 1, horizon = found.dims[1], quantiles = {};
  names.forEach((name, c) => {
    quantiles[name] = Object.fromEntries((levels.length ? levels.map(String) : ["mean"]).map((level, q) => [level, Array.from({length: horizon}, (_, h) => {
      const at = alone ? (c * horizon + h) * depth + q : (h * number + c) * depth + q;
      return (found.data[at] * columns[c].scale + columns[c].level) * spread[c] + mean[c];
    })]));
  });
  const middle = levels.length ? "0.5" : "mean";
  const values = Object.fromEntries(names.map(name => [name, quantiles[name][middle]]));
  return [{output: "", values, quantiles: levels.length ? quantiles : {}}];
}

const ANSWERS = {label, labels, number, tags, text, drawing, next, frames, forecast};
