// Which page is shown: the part of the address behind the #. Each page is a function that fills a place.

import {get, giveUp, Refused, runPath, setToken, takeToken} from "./api.js";
import {el, fill} from "./dom.js";
import {showGuess} from "./guess.js";
import {showPictures} from "./pictures.js";
import {showPull} from "./pull.js";
import {about, showRuns} from "./runs.js";
import {showSlider} from "./slider.js";
import {showComparison, showTraining} from "./training.js";
import {showTry} from "./try.js";

const main = document.getElementById("main");
const TABS = {  // what stands on the tab, what fills the page, and what one can do there
  try: ["Try it", showTry, ""],
  training: ["Scores and training", showTraining, "how good it is beside the baselines, and how its loss fell"],
  pictures: ["Pictures", showPictures, "attention, gates, states and gradients while it answers"],
  slider: ["While it learned", showSlider, "the same input, answered as the model was after each kept step of its training"],
  pull: ["Pull it", showPull, "close a gate, silence a unit or move its attention, and see what that does to the answer"],
  guess: ["Guess against it", showGuess, "guess the next letters yourself, and see who needs fewer bits"],
};

let leave = new AbortController();  // aborted when another page is shown: what polls or plays stops

async function route() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  leave.abort();
  giveUp();
  leave = new AbortController();
  const [kind, ...names] = location.hash.slice(2).split("/").map(decodeURIComponent);
  try {
    if (kind === "runs" && names[0]) await showRun(names[0], names[1] ?? "", leave.signal);
    else if (kind === "compare" && names[1]) await showComparison(main, names[0], names[1], leave.signal);
    else await showRuns(main, leave.signal);
  } catch (error) {
    if (error.name !== "AbortError") showFault(error);
  }
  window.scrollTo(0, 0);
}

async function showRun(name, tab, signal) {
  const run = await get(runPath(name), signal);
  const untrained = !run.servable;
  const tabs = Object.entries(TABS).filter(([key]) => key !== "guess" || run.task === "language")
    .filter(([key]) => !untrained || key === "training");
  const current = tabs.some(([key]) => key === tab) ? tab : tabs[0][0];
  const place = el("div");
  fill(main, el("h1", {}, name), el("p", {class: "soft"}, about(run)),
    el("nav", {class: "tabs", "aria-label": `Pages of ${name}`}, tabs.map(([key, [words]]) =>
      link(name, key, words, {"aria-current": key === current ? "page" : null}))),
    place);
  document.title = `${name} · seqloom`;
  await TABS[current][1](place, run, signal);
  if (current === "try") place.append(others(name, tabs.slice(1)));
}

const link = (name, key, words, props = {}) => el("a", {href: `#/runs/${encodeURIComponent(name)}/${key}`, ...props}, words);

function others(name, tabs) {
  return el("section", {}, el("h2", {}, "What else you can do with it"),
    el("ul", {}, tabs.map(([key, [words, , says]]) => el("li", {}, link(name, key, words), `: ${says}.`))));
}

function showFault(error) {
  if (error instanceof Refused && error.status === 401) return showLogin();
  fill(main, el("h1", {}, "That did not work"), el("p", {class: "error", role: "alert"}, error.message),
    el("div", {class: "row"}, el("button", {onclick: route}, "Try again"), el("a", {href: "#/"}, "All runs")));
}

function showLogin() {
  const input = el("input", {id: "token", type: "password", autocomplete: "off"});
  fill(main, el("h1", {}, "This server wants its token"),
    el("form", {onsubmit: event => { event.preventDefault(); setToken(input.value); route(); }},
      el("label", {class: "block", for: "token"}, "The token that the server was started with (SEQLOOM_TOKEN)"),
      el("div", {class: "row"}, input, el("button", {class: "main"}, "Enter"))));
  input.focus();
}

addEventListener("hashchange", () => { route().then(() => main.focus()); });
takeToken();
route();
