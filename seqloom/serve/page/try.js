// Try it: an input, the answer as one types, why, and what the model attended to.

import {latest, post} from "./api.js";
import {showAnswer} from "./answers.js";
import {attentionWords} from "./attention.js";
import {el, fill, visible} from "./dom.js";
import {inputForm, LONGEST, tooLong} from "./input.js";
import {showNext} from "./next.js";
import {viewer} from "./pictures.js";
import {why} from "./why.js";

const FIRST = {seq2seq: "beam", caption: "attention", draw: "attention", classify: "attribution", tag: "gates", forecast: "gates",
  language: "gates", music: "gates"};

export async function showTry(place, run, signal) {
  const output = el("section", {"aria-live": "polite", "aria-label": "Answer"});
  const far = el("p", {class: "soft small", hidden: true}, `What is longer than ${LONGEST} characters is answered, but not looked into.`);
  const inside = el("section"), views = viewer(run.name, FIRST[run.task]);
  const opened = el("details", {}, el("summary", {}, "Pictures of what happens inside"), views.place);
  const reasons = why(run.name, () => {
    views.choose("faithfulness");
    if (opened.open) views.update(last, best);
    opened.open = true;
    opened.scrollIntoView();
  });
  const ask = latest();
  let last = null, best = null, pixels = null;  // the input, the answer as text, and the image that was drawn

  opened.addEventListener("toggle", () => { if (opened.open && last !== null) views.update(last, best); });
  const attention = attentionWords(run.name);

  const form = await inputForm(run, (input, target) => {
    last = input;
    output.setAttribute("aria-busy", "true");
    reasons.reset();
    return ask(abort => form.writes_text ? showNext.ask(run, input, abort)
      : post("/predict", {run: run.name, inputs: [input]}, abort),
    async told => {
      output.removeAttribute("aria-busy");
      if (form.writes_text) {
        best = null;
        showNext(output, run, told, form, signal);
      } else {
        const [answer] = told.answers;
        const [first] = answer.predictions;
        pixels = first?.pixels ?? null;
        // Without an answer the model's own is looked at: tags are told with their words, which would count as read twice.
        best = first?.tags ? null : first?.squares?.join(" ") ?? first?.output ?? null;
        await showAnswer(output, answer, input, target, form.example()?.ahead);
      }
      inside.hidden = tooLong(input);
      far.hidden = !inside.hidden;
      if (inside.hidden) return;
      const token = form.writes_text ? told.tokens[0] : null;  // of a text, what is expected next is explained
      reasons.about(input, token ?? best, token ? `“${visible(token)}” as what comes next` : pixels && "this image", token && `Why “${visible(token)}”?`);
      await attention.update(input, best, form.example()?.picture, pixels);
      if (opened.open) views.update(input, best);
    }, error => { output.removeAttribute("aria-busy"); fill(output, el("p", {class: "error"}, error.message)); });
  }, signal, false);
  fill(inside, attention.place, reasons.place, opened);
  fill(place, form.place, output, inside, far);
  form.begin();
}
