// Where else: choose a span of what a layer reads, and see where in the test examples the same units behave so.

import {latest, post} from "./api.js";
import {el, fill, narrow, number, percent, visible} from "./dom.js";

const AROUND = 24;  // steps that are shown before and after what was found

export function spanSearch(name) {
  const place = el("section"), load = latest();
  const update = input => load(signal => post("/levels", {run: name, input}, signal),
    told => show(place, name, input, told.levels), error => fill(place, el("p", {class: "soft small"}, error.message)));
  return {place, update};
}

function show(place, name, input, levels) {
  const which = el("select", {id: "level"}, levels.map((one, at) => el("option", {value: at}, `${one.level} (${one.units} units)`)));
  const chips = el("div", {class: "chips many", role: "group", "aria-label": "Choose a span",
    onpointerup: () => { dragged = null; }, onpointerleave: () => { dragged = null; }}), said = el("p", {role: "status", class: "small"});
  const found = el("div", {"aria-live": "polite"}), ask = latest();
  let start = null, end = null, dragged = null;

  const search = el("button", {class: "main", disabled: true, onclick: () => {
    fill(found, el("p", {class: "soft"}, "Reading the test examples …"));
    return ask(signal => post("/similar-spans", {run: name, input, level: levels[which.value].level, start, end}, signal),
      told => fill(found, tell(told)), error => fill(found, el("p", {class: "error"}, error.message)));
  }}, "Find where else");

  function mark() {
    const steps = levels[which.value].steps;
    [...chips.children].forEach((chip, at) => {
      const on = start !== null && at >= start && at < end;
      chip.classList.toggle("on", on);
      chip.setAttribute("aria-pressed", String(on));
    });
    search.disabled = start === null;
    said.textContent = start === null ? "Drag over the elements, or press the first and then the last one."
      : `Chosen: “${steps.slice(start, end).map(visible).join(" ")}”.`;
  }
  const span = (first, last) => { [start, end] = [Math.min(first, last), Math.max(first, last) + 1]; mark(); };
  function lay() {
    let anchor = null;
    [start, end] = [null, null];
    fill(found);
    fill(chips, levels[which.value].steps.map((step, at) => el("button", {type: "button", class: "chip", "aria-pressed": "false",
      onpointerdown: () => { dragged = at; },
      onpointerenter: () => { if (dragged !== null) { anchor = null; span(dragged, at); } },
      onclick: () => {  // the second press ends the span that the first one began
        span(anchor ?? at, at);
        anchor = anchor === null ? at : null;
      }}, el("span", {class: "word"}, visible(step)))));
    mark();
  }
  which.addEventListener("change", lay);
  fill(place, el("details", {open: !narrow.matches}, el("summary", {}, el("h2", {}, "Where else do the same units behave so?")),
    el("p", {}, "Choose a part of what a layer reads. Units that are unusually high or low all over it are looked for in the test examples."),
    el("div", {class: "row"}, el("label", {for: "level"}, "Layer", which)), chips, said, el("div", {class: "row"}, search), found));
  lay();
}

function tell(told) {
  if (!told.units.length) return el("p", {}, "No unit of this layer is unusually high or low all over this span: choose a shorter one, or another layer.");
  const units = told.units.map(one => `${one.unit + 1} ${one.high ? "high" : "low"}`).join(", ");
  const best = told.matches[0];
  return [el("p", {}, `${told.units.length === 1 ? "Unit" : `${told.units.length} units`} behave so here: ${units}. `,
    el("span", {class: "soft"}, `High or low means one standard deviation from the unit's mean. ${told.units.filter(one => one.bounded).length} of them do so `
      + "only here, not just before or after.")),
  el("p", {}, best ? `The ${told.matches.length} spans where most of them do, in ${told.examples} ${told.part} examples (${told.elements.toLocaleString("en")} elements). `
    + `In a span of this length picked at random, ${percent(told.usual)} do.` : `No other span in ${told.examples} ${told.part} examples has any of them.`),
  el("ol", {class: "found"}, told.matches.map(one => el("li", {}, line(one), " ", el("span", {class: "soft small"}, percent(one.share)))))];
}

function line(match) {
  const last = match.start + match.shares.length, first = Math.max(0, match.start - AROUND), until = Math.min(match.steps.length, last + AROUND);
  const gap = match.steps.filter(step => step.length > 1).length < 2 ? "" : " ";
  const words = (from, to) => match.steps.slice(from, to).map(visible).join(gap);
  return el("span", {class: "context", title: `on: ${match.shares.map(number).join(", ")}`}, first > 0 ? "… " : "", words(first, match.start), gap,
    el("mark", {}, words(match.start, last)), gap, words(last, until), until < match.steps.length ? " …" : "");
}
