// The page: try the model, see what happened inside, and how good it is.

import {showAnswer} from "./answers.js";
import {bars, debounced, el, fill, number, percent, table, tempered} from "./dom.js";
import {openGraphs} from "./graph.js";
import {attentionMaps, showGates} from "./inside.js";
import {chooseMap} from "./maps.js";
import {Model, continueText} from "./model.js";
import {readRows, writeRows} from "./rows.js";

const LONGEST = 60, BARS = 10, WRITTEN = 200;  // elements that are looked into; likeliest tokens; tokens that are written

const packed = JSON.parse(document.getElementById("model").textContent);
const model = new Model(packed, openGraphs(packed, document.getElementById("weights").textContent));
const {about, examples} = packed, text = ["text", "frames"].includes(model.reads);
const tags = model.fields.tag?.names ?? [];
let temperature = 1, chosen = 0, current = null;

const output = el("section", {"aria-live": "polite", "aria-label": "Answer"}), attention = el("section"), gates = el("section"), fault = el("p", {class: "error", role: "alert"});
const truth = el("p", {class: "soft"}), picture = el("div");
const area = el("textarea", {id: "input", rows: text ? 2 : 6, spellcheck: "false", autocomplete: "off"});
const style = tags.length ? el("select", {id: "tag"}, tags.map(tag => el("option", {value: tag}, tag))) : null;
const file = model.reads === "image" ? el("input", {id: "file", type: "file", accept: "image/*"}) : null;

// --- asking ---

function ask(input, example = null) {
  current = example;
  fault.textContent = "";
  fill(truth, example?.target && example.target.length < 300 ? ["Right answer: ", el("strong", {}, example.target)] : null);
  fill(picture, example?.picture ? el("img", {class: "pixels", src: example.picture, alt: "the image that is read"}) : null);
  try {
    const {predictions, seen} = model.answer(input, {tag: style?.value ?? null, times: example?.times ?? null});
    if (model.kind === "next") showNext(predictions, input);
    else showAnswer(output, {predictions: predictions.slice(0, 8)}, input, example?.target, example?.ahead);
    look(input, predictions[0], seen, example?.picture);
  } catch (error) {
    fill(output);
    attention.hidden = gates.hidden = true;
    fault.textContent = `This cannot be read: ${error.message}`;
  }
}

function look(input, best, seen, picture) {
  const read = model.reads === "image" ? [] : model.names(input), written = best.tokens ? [...best.tokens, "end"] : [];
  const maps = read.length > LONGEST ? [] : attentionMaps(seen, read, written).map(map => ({...map, image: picture ? {picture, grid: gridOf(map.source.length)} : null}));
  attention.hidden = !maps.length;
  chosen = Math.min(chosen, Math.max(0, maps.length - 1));
  if (maps.length) chooseMap(attention, maps, chosen, number => { chosen = number; });
  if (read.length > LONGEST) gates.hidden = true;
  else showGates(gates, seen, read);
}

// The squares of an image, from how many there are.
function gridOf(count) {
  const [height, width] = model.source.shape;
  for (let side = 1; side <= Math.max(height, width); side++) {
    const rows = Math.ceil(height / side), columns = Math.ceil(width / side);
    if (rows * columns === count) return [rows, columns];
  }
  return null;
}

function showNext(predictions, input) {
  const place = el("div"), said = el("output", {}), written = el("p", {class: "passage", hidden: true});
  const redraw = () => {
    const chances = tempered(predictions.map(one => one.score), temperature);
    said.textContent = temperature.toFixed(2);
    fill(place, bars(predictions.slice(0, BARS).map((one, at) => ({name: one.output, value: chances[at], label: percent(chances[at]), own: at === 0})), 1));
  };
  const draw = logs => {
    const order = logs.map((_, token) => token).filter(token => token > 2).sort((a, b) => logs[b] - logs[a]);
    const chances = tempered(order.map(token => logs[token]), temperature);
    let left = Math.random();
    return order[Math.max(0, chances.findIndex(chance => (left -= chance) < 0))];
  };
  const go = async () => {
    written.hidden = false;
    for (const more of continueText(model, input, WRITTEN, draw)) {
      fill(written, el("span", {class: "soft"}, input), more);
      await new Promise(resolve => setTimeout(resolve));
      if (!written.isConnected) return;
    }
  };
  fill(output, el("h2", {}, "What comes next"), place,
    el("div", {class: "row"}, el("label", {for: "temperature"}, "Temperature"),
      el("input", {id: "temperature", type: "range", min: 0, max: 2, step: 0.05, value: String(temperature), oninput: event => { temperature = Number(event.target.value); redraw(); }}), said,
      el("button", {class: "main", onclick: go}, "Write on from here")), written);
  redraw();
}

function typed() {
  try {
    const rows = text ? area.value : readRows(area.value);
    ask(!text && packed.single ? rows.map(row => row[0]) : rows);
  } catch (error) {
    fault.textContent = error.message;
  }
}

function pick(example) {
  const table = !text && model.reads !== "image";
  if (example.tag && style) style.value = example.tag;
  area.value = table ? writeRows(example.input) : text ? example.input.replaceAll("\t", " ") : "";
  ask(example.input, example);
}

// A picture of any size, drawn at the size that the model reads.
async function readPicture(blob) {
  const [height, width, channels] = model.source.shape, canvas = el("canvas", {width, height}), context = canvas.getContext("2d");
  context.drawImage(await createImageBitmap(blob), 0, 0, width, height);
  const {data} = context.getImageData(0, 0, width, height), input = [];
  for (let place = 0; place < data.length; place += 4) {
    const [red, green, blue] = data.subarray(place, place + 3);
    input.push(channels === 1 ? [Math.round(0.299 * red + 0.587 * green + 0.114 * blue)] : [red, green, blue]);
  }
  ask(input, {input, picture: canvas.toDataURL()});
}

// --- the page ---

// Every example is asked again here, and held against what the run answered.
async function check(place) {
  let same = 0;
  const wrong = [];
  for (const [number, one] of examples.entries()) {
    fill(place, `${number} of ${examples.length} …`);
    await new Promise(resolve => setTimeout(resolve));  // so that the page stays alive
    const [best] = model.answer(one.input, {tag: one.tag ?? null, times: one.times ?? null}).predictions;
    if (agrees(best, one.expected)) same++;
    else wrong.push(one.words);
  }
  fill(place, `${same} of ${examples.length} answers of this page are those of the same weights in Python.`, wrong.length ? ` Others: ${wrong.slice(0, 3).join("; ")}` : "");
}

function agrees(best, expected) {
  if (typeof expected === "string") return best.output === expected;
  return Object.entries(expected).every(([name, values]) => values.every((value, i) => Math.abs(best.values[name][i] - value) <= 1e-3 * Math.max(1, Math.abs(value))));
}

function scores() {
  const rows = Object.entries(about.scores).map(([name, {value, baselines}]) => [name, el("strong", {}, number(value)),
    Object.entries(baselines).map(([other, its]) => `${other} ${number(its)}`).join(", ") || "–"]);
  return rows.length ? table([`on the ${about.split} part`, "this model", "baselines"], rows) : el("p", {class: "soft"}, "The run has no scores.");
}

const short = words => words.length > 70 ? `${words.slice(0, 68)} …` : words;
const choose = el("select", {id: "example", onchange: event => { if (event.target.value !== "") pick(examples[Number(event.target.value)]); }},
  el("option", {value: ""}, `Pick a ${about.part || "test"} example …`), examples.map((one, place) => el("option", {value: place}, short(one.words.replaceAll(/\s+/g, " ") || "(nothing)"))));
const checked = el("p", {class: "soft small", id: "checked", role: "status"});

fill(document.querySelector("main"),
  el("h1", {}, about.title), el("p", {class: "soft"}, about.sentence),
  el("section", {"aria-label": "Input"},
    model.reads === "image" ? el("div", {}, el("label", {class: "block", for: "file"}, "Choose an image; it is drawn at the size that the model reads"), file)
      : el("div", {}, el("label", {class: "block", for: "input"}, text ? "Type or paste" : "Type or paste rows of numbers: a line a step, a comma between columns, nothing where a value is missing"), area),
    style ? el("div", {class: "row"}, el("label", {for: "tag"}, "Write as"), style) : null,
    examples.length ? el("div", {class: "row"}, el("label", {class: "small", for: "example"}, "Examples:"), choose) : null,
    picture, truth, fault),
  output, attention, gates,
  el("section", {}, el("h2", {}, "How good it is"), scores(),
    about.notes.map(line => el("p", {}, line)),
    examples.length ? el("div", {class: "row"}, el("button", {id: "check", onclick: () => check(checked)}, `Ask all ${examples.length} examples again`)) : null, checked));

area.addEventListener("input", debounced(() => { choose.value = ""; typed(); }));
style?.addEventListener("change", () => current ? ask(current.input, current) : typed());
file?.addEventListener("change", () => file.files.length && readPicture(file.files[0]).catch(() => { fault.textContent = "This file is no image that the browser can read."; }));
if (examples.length) { choose.value = "0"; pick(examples[0]); }
