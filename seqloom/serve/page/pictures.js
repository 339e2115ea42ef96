// Every picture that fits a run, by the registry of views: of one input, or of training.

import {latest, post} from "./api.js";
import {figure} from "./chart.js";
import {el, fill} from "./dom.js";
import {inputForm} from "./input.js";

export const TITLES = {
  model: "The network, drawn", attention: "Attention", heads: "Every attention head", beam: "The beam search", next: "What could come next",
  attribution: "What drove the answer", faithfulness: "Is that attribution true?", field: "Receptive field", order: "Does order matter?",
  gates: "Gates", "memory-path": "How long memory lasts", states: "States", units: "Single units", gradients: "Gradient flow",
  "gradient-history": "Gradient flow over training", orthogonality: "Angles of vectors",
  jacobians: "Vanishing or exploding?", scalar: "One unit, in theory", spectrum: "Singular values", "query-key-value": "Queries, keys, values",
  norms: "Normalization", embedding: "Map of the embedding", neighbors: "Nearest symbols", positions: "Positions", probe: "Which layer knows what",
  curves: "Training curves", schedule: "Learning rate", flow: "Gradients over training", updates: "Updates over training",
  "spectrum-history": "Singular values over training", cost: "Time and memory",
};

// A row of buttons, one a view, and the one that is chosen below; kept when the input changes.
export function viewer(name, first = "") {
  const place = el("div"), drawing = el("div", {"aria-live": "polite"}), ask = latest();
  let chosen = first, given = null, answer = null;
  async function show() {
    drawing.setAttribute("aria-busy", "true");
    await ask(signal => post("/look", {run: name, input: given, answer, view: chosen}, signal),
      told => figure(drawing, told), error => fill(drawing, el("p", {class: "error"}, error.message)));
    drawing.removeAttribute("aria-busy");
  }
  function choices(told) {
    const missing = Object.entries(told.missing);
    if (!told.views.some(view => view.name === chosen)) chosen = (told.views.find(view => view.name !== "model") ?? told.views[0]).name;
    const group = (words, some) => some.length ? el("div", {class: "row", role: "group", "aria-label": words},
      el("span", {class: "soft small"}, words), some.map(view => el("button", {"aria-pressed": String(view.name === chosen),
        onclick: event => {
          for (const other of place.querySelectorAll("[aria-pressed]")) other.setAttribute("aria-pressed", "false");
          event.target.setAttribute("aria-pressed", "true");
          chosen = view.name;
          show();
        }}, TITLES[view.name] ?? view.name))) : null;
    fill(place, group("This input:", told.views.filter(view => !view.training)),
      group("Its training:", told.views.filter(view => view.training)), drawing,
      missing.length ? el("details", {}, el("summary", {}, `${missing.length} pictures do not fit this model`),
        el("ul", {}, missing.map(([view, why]) => el("li", {}, `${TITLES[view] ?? view}: ${why}.`)))) : null);
  }
  const list = latest();
  async function update(input, said = null) {
    [given, answer] = [input, said];
    await list(signal => post("/views", {run: name, input, answer}, signal), async told => { choices(told); await show(); },
      error => fill(place, el("p", {class: "error"}, error.message)));
  }
  return {place, update};
}

export async function showPictures(place, run, signal) {
  const views = viewer(run.name);
  const form = await inputForm(run, input => views.update(input), signal);
  fill(place, el("p", {}, "What happens inside the model while it answers this input."), form.place, views.place);
  form.begin();
}
