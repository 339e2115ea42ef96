// The first page: every run with its scores beside the baselines, or how to make a first one.

import {get} from "./api.js";
import {bars, el, fill, number} from "./dom.js";
import {glossary, isReference, network} from "./words.js";

const TASKS = {
  classify: "gives a sequence a label or a number", tag: "gives every element a tag",
  seq2seq: "turns one sequence into another", language: "writes text on", forecast: "forecasts a series",
  music: "writes music", caption: "tells what is on an image", draw: "draws an image from its name",
  transcribe: "writes down what a sequence says", pretrain: "learns from text without labels",
};
const STATES = {trained: "trained", training: "training now", unfinished: "not finished"};

function purpose(run) {
  const title = (run.title || TASKS[run.task]).replace(/\.$/, "");
  return `${title.startsWith(`${run.task}:`) ? "" : `${run.task}: `}${title}.`;
}

export function about(run) {
  const size = run.parameters ? `, ${run.parameters.toLocaleString("en")} parameters` : "";
  return [purpose(run), el("br"), `${network(run.network)}${size}.`];
}

// The score that says most to a person: in the unit of the data, where there is one.
const main = scores => scores.find(([name]) => name.startsWith("MAE") && !name.endsWith("(scaled)")) ?? scores[0];

// The scores of one run: a bar for the model and one for each baseline, and in words whether it beats them.
export function scores(run, short = false) {
  const found = Object.entries(run.scores);
  if (!found.length) return el("p", {class: "soft"}, "No final scores yet: they come when training ends.");
  return [(short ? [main(found)] : found).map(([name, score]) => {
    const others = Object.entries(score.baselines);
    const rows = [{name: "this run", value: score.value, own: true, label: short ? number(score.value) : own(score)},
      ...others.map(([words, value]) => ({name: words, value, label: number(value)}))];
    return [el("h3", {}, `${name} `, el("span", {class: "soft small"}, direction(score))), el("p", {class: "soft small"}, `Scale: ${score.scale}.`), bars(rows),
      verdict(score, others.filter(([words]) => !isReference(words)).map(([, value]) => value))];
  }), short ? null : glossary(run.scores)];
}

const direction = score => ({higher: "higher is better", lower: "lower is better", nearer: "nearer to the right value is better"})[score.better];

function own(score) {
  const [low, high] = score.interval ?? [];
  return `${number(score.value)}${low === undefined ? "" : ` (95 %: ${number(low)} to ${number(high)})`}`;
}

function verdict(score, others) {
  if (!others.length || score.better === "nearer") return null;
  const best = score.better === "higher" ? Math.max(...others) : Math.min(...others);
  const [low, high] = score.interval ?? [score.value, score.value];
  const wins = score.better === "higher" ? low > best : high < best;
  const loses = score.better === "higher" ? high < best : low > best;
  if (wins) return el("p", {class: "good small"}, "✓ better than every baseline");
  if (loses) return el("p", {class: "bad small"}, "✗ worse than the best baseline, which needs no network");
  return el("p", {class: "bad small"}, "≈ no better than the best baseline, within the interval");
}

export async function showRuns(place, signal) {
  const told = await get("/runs", signal);
  if (place.querySelector(".card :checked")) return renewLater(place, signal);  // what is ticked stays so
  document.title = "seqloom";
  const refused = Object.entries(told.refused);
  if (!told.runs.length) fill(place, firstRun(told.folder));
  else fill(place, el("h1", {}, "Runs"), el("p", {class: "soft"},
    "Each is a trained model in a folder of its own. Open one to try it and to look inside. Beside its score stand baselines: simple answers that need no network."), cards(told.runs));
  if (refused.length) place.append(el("details", {}, el("summary", {}, refused.length === 1 ? "1 folder here is no run, or not yet" : `${refused.length} folders here are no runs, or not yet`),
    el("ul", {}, refused.map(([name, why]) => el("li", {}, el("code", {}, name), ": ", why)))));
  if (!told.runs.length || told.runs.some(run => run.state === "training")) renewLater(place, signal);
}

function renewLater(place, signal) {
  const timer = setTimeout(() => showRuns(place, signal).catch(() => {}), 3000);
  signal.addEventListener("abort", () => clearTimeout(timer));
}

function cards(runs) {
  const chosen = new Set();
  const compare = el("button", {class: "main", onclick: () => {
    location.hash = `#/compare/${[...chosen].map(encodeURIComponent).join("/")}`;
  }}), bar = el("div", {class: "row pinned", hidden: true}, compare);
  const tick = name => el("label", {class: "small"}, el("input", {type: "checkbox", onchange: event => {
    event.target.checked ? chosen.add(name) : chosen.delete(name);
    compare.disabled = chosen.size !== 2;
    compare.textContent = chosen.size === 2 ? "Compare these two" : chosen.size < 2 ? "Tick another one to compare them" : "Tick only two to compare them";
    bar.hidden = !chosen.size;
  }}), "compare ", el("span", {class: "soft"}, name));
  return [el("ul", {class: "cards"}, runs.map(run => el("li", {class: "card"},
    el("h2", {}, el("a", {href: `#/runs/${encodeURIComponent(run.name)}`}, run.name), " ",
      el("span", {class: `state ${run.state === "trained" ? "soft" : "good"}`}, STATES[run.state])),
    el("p", {class: "small"}, purpose(run)), el("p", {class: "soft small"}, network(run.network)),
    scores(run, true), runs.length > 1 ? tick(run.name) : null))),
  bar];
}

function firstRun(folder) {
  return [el("h1", {}, "No run here yet"),
    el("p", {}, "A run is a trained model in a folder. Make a first one: type this in another terminal, where you started the server, ",
      "and leave this page open. It takes about two minutes and needs no data of your own:"),
    el("pre", {}, `seqloom train seq2seq --into ${folder}/dates`),
    el("p", {}, "It learns to read dates as people write them in 68 languages. You can watch it here while it trains. With a table of your own:"),
    el("pre", {}, `seqloom train classify data.train=reviews.csv data.source=text data.target=label --into ${folder}/reviews`),
    el("p", {}, "Everything there is: ", el("code", {}, "seqloom recipes"), ".")];
}
