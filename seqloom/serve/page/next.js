// What comes next in a text: bars for the likeliest tokens, a slider for the temperature, and writing on.

import {post, stream} from "./api.js";
import {bars, el, fill, percent, tempered, visible} from "./dom.js";
import {showTune} from "./tune.js";

const BARS = 10;
let temperature = null;  // stays as it was set, whatever is typed

export function showNext(place, run, told, form, signal) {
  temperature ??= run.task === "music" ? 0.5 : 1;
  const place_bars = el("div"), said = el("output", {});
  const written = place.querySelector(".written") ?? el("div", {class: "written"});  // what is being written stays while one types on
  const redraw = () => {
    const chances = tempered(told.logs, temperature);
    said.textContent = temperature.toFixed(2);
    fill(place_bars, bars(told.tokens.slice(0, BARS).map((token, at) =>
      ({name: visible(token), value: chances[at], label: percent(chances[at]), own: at === 0})), 1));
  };
  const slider = el("input", {id: "temperature", type: "range", min: 0, max: 2, step: 0.05, value: String(temperature), oninput: event => {
    temperature = Number(event.target.value);
    redraw();
  }});
  const button = el("button", {class: "main", onclick: async () => {
    written.stop?.();
    const writing = new AbortController();
    written.stop = () => writing.abort();
    signal.addEventListener("abort", written.stop);
    const text = el("p", {class: "passage"}, el("span", {class: "soft"}, form.text())), more = el("span"), notes = el("div");
    text.append(more);
    fill(written, text, notes);
    try {
      const asked = {model: run.name, prompt: form.text(), max_tokens: run.task === "music" ? 400 : 200, temperature};
      await stream(asked, piece => { more.textContent += piece; }, writing.signal);
      if (run.task === "music") await showTune(notes, form.text() + more.textContent, signal);
    } catch (error) {
      if (error.name !== "AbortError") fill(notes, el("p", {class: "error"}, error.message));
    }
  }}, run.task === "music" ? "Write a tune from here" : "Write on from here");
  fill(place, el("h2", {}, "What comes next"), el("p", {class: "soft small"}, [
    told.tokens.length > BARS ? `The ${BARS} likeliest of ${told.tokens.length.toLocaleString("en")} tokens, and how probable each is.` : "All tokens, and how probable each is.",
    told.left_out > 0.001 ? ` ${percent(told.left_out)} belong to tokens that are never written or too rare to be sent; the bars leave them out.` : ""]),
  place_bars, el("div", {class: "row"}, el("label", {for: "temperature"}, "Temperature"), slider, said,
    el("span", {class: "soft small"}, "0 always takes the likeliest; above 1, rare ones come more often")),
  el("div", {class: "row"}, button), written);
  redraw();
}

showNext.ask = (run, input, signal) => post("/next", {run: run.name, input}, signal);
