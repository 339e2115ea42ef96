// What a visitor asks: typed, pasted, or picked from the test examples. `changed` is called with the input and, where it
// is known, the right answer; where the model is looked into, not with one that is too long for that.

import {get, runPath} from "./api.js";
import {canvasOf} from "./answers.js";
import {debounced, el, fill, visible} from "./dom.js";
import {readRows, writeRows} from "./rows.js";

const isTable = value => Array.isArray(value) && !Array.isArray(value[0]?.[0]);
const short = words => words.length > 70 ? `${words.slice(0, 68)} …` : words;
const WIDE = 16;  // columns beyond which nobody reads rows of numbers, as of a sound: they are drawn

const ASKS = {
  tag: "Type or paste, with a blank between the elements", language: "Type or paste the beginning of a text",
  music: "Type or paste the beginning of a tune, in ABC notation: X: is its number, K: its key, then come the notes",
  pretrain: "Type or paste a text with ___ where something is missing",
};
const NUMBERS = "Type or paste rows of numbers: a line a step, a comma between columns, nothing where a value is missing";

// Rows of numbers as a picture: time from left to right, the first column below.
function drawRows(rows) {
  const known = rows.flat().filter(value => value !== null), low = Math.min(...known), high = Math.max(...known);
  const gray = value => value === null ? 0 : Math.round(255 * (value - low) / (high - low || 1));
  return canvasOf(rows[0].map((_, column) => rows.map(row => gray(row[rows[0].length - 1 - column]))), "the numbers that are read");
}

export const LONGEST = 480;  // characters that are looked into, as the server has it
export const tooLong = input => typeof input === "string" && input.length > LONGEST;

export async function inputForm(run, answer, signal, inside = true) {
  const form = await get(`${runPath(run.name)}/input`, signal);
  const told = await get(`${runPath(run.name)}/examples`, signal).catch(error => {
    if (error.name === "AbortError") throw error;
    return {examples: [], why: error.message};
  });
  const text = form.reads === "text", wide = (told.examples[0]?.input?.[0]?.length ?? 0) > WIDE && isTable(told.examples[0].input), fault = el("p", {class: "error", role: "alert"}), truth = el("p", {class: "soft"}), picture = el("div");
  const flat = told.examples.length && !Array.isArray(told.examples[0].input?.[0]);
  const area = el("textarea", {id: "input", rows: text && run.task !== "music" ? 2 : 6, spellcheck: "false", autocomplete: "off"});
  let current = null;  // the example that is shown, until something else is typed
  const changed = (input, target) => {
    fault.textContent = inside && tooLong(input) ? `This is longer than ${LONGEST} characters, which is too much to look into: shorten it, or take another example.` : "";
    return fault.textContent ? null : answer(input, target);
  };

  function typed() {
    current = null;
    fill(truth);
    fill(picture);
    try {
      const rows = text ? area.value : readRows(area.value);
      if (wide) fill(picture, drawRows(rows));
      changed(text || !flat ? rows : rows.map(row => row[0]), null);
    } catch (error) {
      fault.textContent = error.message;
    }
  }

  function pick(example) {
    current = example;
    const pair = Array.isArray(example.input) && typeof example.input[0] === "string";
    area.value = text ? (pair ? example.input[0] : run.task === "tag" ? example.input.replaceAll("\t", " ") : example.input) : isTable(example.input) ? writeRows(example.input) : "";
    area.closest("div").hidden = !text && !isTable(example.input);
    fill(picture, !example.picture ? null : text ? el("p", {class: "soft small"}, "An image of that name:") : null,
      example.picture ? el("img", {class: "pixels", src: example.picture, alt: text ? "an image of that name" : "the image that is read"}) : null);
    if (wide) fill(picture, el("p", {class: "soft small"}, "What is read, from left to right:"), drawRows(example.input));
    fill(truth, example.ahead || (text && example.picture) || example.target.length > 300 ? null
      : [form.writes_text ? "The text goes on with: " : "Right answer: ", el("strong", {}, form.writes_text ? visible(example.target) : example.target)]);
    changed(example.input, example.target);
  }

  const picturesOnly = !text && told.examples.every(one => one.picture);  // which have no words of their own
  const choose = el("select", {id: "example", onchange: event => { if (event.target.value !== "") pick(told.examples[Number(event.target.value)]); }},
    el("option", {value: ""}, `Pick a ${told.part ?? "test"} example …`),
    told.examples.map((one, place) => el("option", {value: place}, `${place + 1}: ${short(picturesOnly ? one.target : one.words || "an example")}`)));
  const another = el("button", {onclick: () => {
    const place = Math.floor(Math.random() * told.examples.length);
    choose.value = String(place);
    pick(told.examples[place]);
  }}, "Another one");
  area.addEventListener("input", debounced(() => { choose.value = ""; typed(); }));
  const asked = el("div", {}, el("label", {class: "block", for: "input"}, text ? ASKS[run.task] ?? "Type or paste" : NUMBERS), area);
  const place = el("section", {"aria-label": "Input"},
    wide ? null : asked,
    told.examples.length ? el("div", {class: "row"}, el("label", {class: "small", for: "example"}, "Examples:"), choose, another)
      : el("p", {class: "soft small"}, `Type an input of your own; there are no test examples to pick from (${told.why ?? "the test part is empty"}).`),
    picture, wide ? el("details", {}, el("summary", {}, "The numbers, to change them or to paste others"), asked) : null, truth, fault);
  const begin = () => {
    if (run.task === "music" && text) { area.value = "X:1\n"; typed(); }
    else if (told.examples.length) { choose.value = "0"; pick(told.examples[0]); }
    else if (text) { area.value = ""; area.focus(); }
  };
  return {place, begin, ...form, text: () => area.value, example: () => current};
}
