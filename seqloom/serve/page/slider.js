// While it learned: the same input through the kept checkpoints, from step 0 to the end, by a slider.

import {latest, post} from "./api.js";
import {brief, showAnswer} from "./answers.js";
import {el, fill} from "./dom.js";
import {inputForm} from "./input.js";

export async function showSlider(place, run, signal) {
  const body = el("section"), ask = latest();
  const form = await inputForm(run, (input, target) => {
    fill(body, el("p", {class: "soft"}, "Asking every checkpoint …"));
    return ask(abort => post("/over-training", {run: run.name, input}, abort), told => show(told, input, target),
      error => fill(body, el("p", {class: "error"}, error.message)));
  }, signal);

  function show(told, input, target) {
    const shots = told.snapshots, last = shots.length - 1, answer = el("section", {"aria-live": "polite"}), when = el("strong");
    const name = shot => shot.step === null ? `the end (best weights of ${run.steps.toLocaleString("en")} steps)`
      : shot.step === 0 ? "step 0: nothing learned yet" : `step ${shot.step.toLocaleString("en")}`;
    const move = at => { when.textContent = name(shots[at]); return showAnswer(answer, shots[at], input, target); };
    const slider = el("input", {id: "step", type: "range", min: 0, max: last, step: 1, value: String(last), oninput: event => move(Number(event.target.value))});
    let timer = 0;
    const play = el("button", {onclick: () => {
      clearInterval(timer);
      let at = 0;
      timer = setInterval(() => {
        slider.value = String(at);
        move(at);
        if (++at > last || signal.aborted) clearInterval(timer);
      }, 600);
    }}, "▶ From the beginning");
    signal.addEventListener("abort", () => clearInterval(timer));
    fill(body, el("div", {class: "row"}, el("label", {for: "step"}, "After"), slider, when, play), answer,
      el("details", {}, el("summary", {}, "All of them below one another"), el("ol", {class: "plain"}, shots.map(shot =>
        el("li", {}, `${name(shot)}: `, el("code", {}, brief(shot.predictions)))))),
      told.skipped.length ? el("p", {class: "bad small"}, `Left out: ${told.skipped.join("; ")}`) : null,
      shots.length < 6 ? [el("p", {}, "Little to see? Training keeps its last two checkpoints unless it is told otherwise. The same training once more, with 20 of them kept:"),
        el("pre", {}, `seqloom train ${run.path}/recipe.toml train.keep_checkpoints=20 --into ${run.path}-watched`)] : null);
    move(last);
  }
  fill(place, el("p", {}, "The same input, answered by the model as it was at each step that was kept."), form.place, body);
  form.begin();
}
