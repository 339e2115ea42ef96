// Scores and curves of a run, of two side by side, and of one that trains right now.

import {get, runPath} from "./api.js";
import {draw, widthOf} from "./chart.js";
import {el, fill, number, table} from "./dom.js";
import {about, scores} from "./runs.js";

const COLORS = ["#0072B2", "#D55E00"];
const PAUSE = 1000;  // milliseconds between two looks at a run that trains

// Follow the records of a run: `seen` is called with all of them whenever there are more.
async function follow(name, seen, signal) {
  const records = [];
  let after = 0;
  for (;;) {
    const told = await get(`${runPath(name)}/records?after=${after}`, signal);
    if (told.restarted) records.length = 0;
    records.push(...told.records);
    const more = told.records.length > 0 && told.after > after;
    after = told.after;
    await seen(records, told);
    if (told.state !== "training" && !more) return;
    if (told.state === "training") await new Promise(resolve => setTimeout(resolve, PAUSE));
    if (signal.aborted) return;
  }
}

const points = (name, records) => records.filter(one => one.kind !== "note").flatMap(one => [
  ...(one.loss == null ? [] : [{run: name, step: one.step, loss: one.loss, what: "training"}]),
  ...(one.scores?.loss == null ? [] : [{run: name, step: one.step, loss: one.scores.loss, what: "validation"}])]);

function curves(place, values, names) {
  const several = names.length > 1;
  return {
    data: {values}, width: widthOf(place, 560), height: 260, mark: {type: "line", interpolate: "linear", tooltip: true, point: values.length < 60},
    encoding: {
      x: {field: "step", type: "quantitative", title: "step"},
      y: {field: "loss", type: "quantitative", title: "loss", scale: {zero: false}},
      color: {field: several ? "run" : "what", type: "nominal", title: null, legend: {orient: "bottom"},
        scale: {domain: several ? names : ["training", "validation"], range: COLORS}},
      ...(several ? {strokeDash: {field: "what", type: "nominal", legend: null}} : {}),
    },
  };
}

function progress(records, run) {
  const last = records.findLast(one => one.kind !== "note");
  if (!last) return run.state === "training" ? "Training has begun; the first record is still to come." : "There are no records.";
  const share = run.steps ? ` of ${run.steps.toLocaleString("en")}` : "";
  const speed = last.tokens_per_second ? `, ${Math.round(last.tokens_per_second).toLocaleString("en")} tokens a second` : "";
  return `Step ${last.step.toLocaleString("en")}${share}, loss ${number(last.loss)}${speed}.`;
}

export async function showTraining(place, run, signal) {
  const result = el("section", {}), state = el("p", {role: "status"}), notes = el("div"), chart = el("div", {class: "wide chart", tabindex: "0",
    role: "region", "aria-label": "Loss by step"});
  fill(place, result, el("h2", {}, "How training went"),
    el("p", {}, "The loss is how surprised the model is by the right answers: 0 is not at all. Training and validation should fall together; where they part, the model learns by heart."), state, chart, notes);
  const showScores = told => fill(result, el("h2", {}, "How good it is"), told.examples ? el("p", {class: "soft"},
    `On ${told.examples.toLocaleString("en")} ${told.split} ${["language", "music", "pretrain"].includes(told.task) ? "text" : "example"}${told.examples === 1 ? "" : "s"}, which training has not seen.`) : null, scores(told));
  showScores(run);
  await follow(run.name, async (records, told) => {
    state.textContent = (told.state === "training" ? "Live: " : "") + progress(records, told);
    if (records.length) await draw(chart, curves(chart, points(run.name, records), [run.name]));
    const sentences = records.filter(one => one.kind === "note").map(one => one.text);
    const open = notes.querySelector("details")?.open ?? false;
    fill(notes, sentences.length ? el("details", {open}, el("summary", {}, `${sentences.length} notes that training made`),
      el("ul", {}, sentences.map(sentence => el("li", {}, sentence)))) : null);
    if (told.state !== run.state) { run = told; showScores(told); }
  }, signal);
}

export async function showComparison(place, first, second, signal) {
  const runs = await Promise.all([first, second].map(name => get(runPath(name), signal)));
  const names = [...new Set(runs.flatMap(run => Object.keys(run.scores)))];
  const value = (run, name) => {
    const score = run.scores[name];
    if (!score) return "–";
    const [low, high] = score.interval ?? [];
    return `${number(score.value)}${low === undefined ? "" : ` (${number(low)} to ${number(high)})`}`;
  };
  const better = name => {
    const [a, b] = runs.map(run => run.scores[name]);
    if (!a || !b || a.better === "nearer") return "";
    if (!a.interval || !b.interval) return "no interval";
    if (a.interval[0] <= b.interval[1] && b.interval[0] <= a.interval[1]) return "too close to tell";
    return (a.value > b.value) === (a.better === "higher") ? first : second;
  };
  const chart = el("div", {class: "wide chart", tabindex: "0", role: "region", "aria-label": "Loss of both runs by step"});
  fill(place, el("h1", {}, `${first} beside ${second}`), runs.map(run => el("p", {class: "soft small"}, `${run.name}: `, about(run))),
    runs[0].task !== runs[1].task ? el("p", {class: "bad"}, "These runs have different tasks: their scores cannot be compared.") : null,
    el("h2", {}, "Scores, with 95 % intervals"), table(["score", first, second, "better"], names.map(name =>
      [name, ...runs.map(run => value(run, name)), better(name)])),
    el("p", {class: "soft small"}, "The intervals come from the test examples alone. The same recipe with another seed would differ too."),
    el("h2", {}, "Curves"), el("p", {}, "Solid: training. Dashed: validation. Losses compare only if both predict the same targets."), chart);
  document.title = `${first} beside ${second} · seqloom`;
  const seen = {};
  const redraw = (name, records) => {
    seen[name] = points(name, records);
    return Object.keys(seen).length === 2 ? draw(chart, curves(chart, Object.values(seen).flat(), [first, second])) : null;
  };
  await Promise.all(runs.map(run => follow(run.name, records => redraw(run.name, records), signal)));
}
