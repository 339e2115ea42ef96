// Every picture that fits a run, by the registry of views: of one input, or of training.

import {latest, post} from "./api.js";
import {figure} from "./chart.js";
import {el, fill, narrow} from "./dom.js";
import {inputForm} from "./input.js";
import {FURTHER, QUESTIONS, TITLES} from "./views.js";

// A row of buttons for each question, one a view, and the one that is chosen below; kept when the input changes. Where
// there is no room for buttons, a list.
export function viewer(name, first = "") {
  const place = el("div"), drawing = el("div", {"aria-live": "polite"}), ask = latest(), list = latest();
  const further = el("details", {}, el("summary", {}, "More pictures, for those who build models"));
  let chosen = first, given = null, answer = null;
  async function show() {
    for (const button of place.querySelectorAll("[aria-pressed]")) button.setAttribute("aria-pressed", String(button.value === chosen));
    drawing.setAttribute("aria-busy", "true");
    await ask(signal => post("/look", {run: name, input: given, answer, view: chosen}, signal),
      told => figure(drawing, told), error => fill(drawing, el("p", {class: "error"}, error.message)));
    drawing.removeAttribute("aria-busy");
  }
  function choices(told) {
    const missing = Object.entries(told.missing), fitting = Object.fromEntries(told.views.map(view => [view.name, view]));
    const own = told.views.filter(view => !TITLES[view.name]).map(view => [view.name, view.name]);  // of a plug-in
    const known = [...QUESTIONS, ["Charts of your own", Object.fromEntries(own)]], all = [...known, ...FURTHER];
    const pick = view => { chosen = view; show(); };
    const asked = (questions, make) => questions.map(([question, titles]) => [question, Object.entries(titles).filter(([view]) => fitting[view])])
      .filter(([, views]) => views.length).map(([question, views]) => make(question, views));
    const buttons = (question, views) => el("div", {class: "question", role: "group", "aria-label": question}, el("span", {}, question),
      el("div", {class: "row"}, views.map(([view, words]) => el("button", {value: view, "aria-pressed": "false", title: fitting[view].reading,
        onclick: () => pick(view)}, words))));
    const options = (question, views) => el("optgroup", {label: question}, views.map(([view, words]) =>
      el("option", {value: view, selected: view === chosen}, words)));
    if (!fitting[chosen]) chosen = all.flatMap(([, titles]) => Object.keys(titles)).find(view => fitting[view]);
    fill(further, further.firstChild, asked(FURTHER, buttons));
    further.open ||= FURTHER.some(([, titles]) => titles[chosen]);
    fill(place, narrow.matches ? el("label", {}, "Picture", el("select", {onchange: event => pick(event.target.value)}, asked(all, options)))
      : [asked(known, buttons), further], drawing,
      missing.length ? el("details", {}, el("summary", {}, `${missing.length} pictures do not fit this model`),
        el("ul", {}, missing.map(([view, why]) => el("li", {}, `${TITLES[view] ?? view}: ${why}.`)))) : null);
  }
  async function update(input, said = null) {
    [given, answer] = [input, said];
    await list(signal => post("/views", {run: name, input, answer}, signal), async told => { choices(told); await show(); },
      error => fill(place, el("p", {class: "error"}, error.message)));
  }
  return {place, update, choose: view => { chosen = view; }};
}

export async function showPictures(place, run, signal) {
  const views = viewer(run.name);
  const form = await inputForm(run, input => views.update(input), signal);
  fill(place, el("p", {}, "What happens inside the model while it answers this input. Choose a picture by the question that it answers."), form.place, views.place);
  form.begin();
}
