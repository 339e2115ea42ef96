// Why? Which elements of the input spoke for the answer, by several methods, and how far each may be believed.

import {latest, post} from "./api.js";
import {el, fill, number, percent, visible} from "./dom.js";

const WHOLE = "the whole answer";

const called = about => /^[+]\d+$/.test(about) ? `the forecast ${about.slice(1)} step${about === "+1" ? "" : "s"} ahead` : `“${about}”`;

// `drawn` opens the picture of how faithful the best method is.
export function why(name, drawn) {
  const place = el("section"), told = el("div", {"aria-live": "polite"}), ask = latest();
  let input = null, answer = null, words = null;  // what the answer is called, if not by its own words
  let next = false;  // whether it is what comes next, of which no picture is drawn
  const button = el("button", {disabled: true, onclick: () => {
    fill(told, el("p", {class: "soft"}, "Asking the model many times, with parts of the input taken away …"));
    ask(signal => post("/explain", {run: name, input, answer}, signal), found => show({...found, answer: words ?? (found.about === WHOLE ? WHOLE : called(found.about))}), error => fill(told, el("p", {class: "error"}, error.message)));
  }}, "Why this answer?");
  fill(place, el("div", {class: "row"}, button), told);

  function show(found) {
    const [best, ...others] = found.methods;
    fill(told, method(found, best), faithfulness(next ? null : drawn), others.length ? el("details", {}, el("summary", {}, `${others.length} other methods`),
      others.map(one => method(found, one))) : null);
  }
  return {
    place,
    reset: () => { fill(told); button.disabled = true; },
    about: (given, said, called = null, question = null) => {
      [input, answer, words, next] = [given, said, called, question !== null];
      button.textContent = question ?? "Why this answer?";
      button.disabled = false;
    },
  };
}

function faithfulness(drawn) {
  return el("details", {}, el("summary", {}, "What is faithfulness?"), el("p", {}, "An attribution is a guess about the model, and such guesses are often wrong. ",
    "So it is tested: the elements that it calls important are taken away one after another, the most important first, and the model is asked each time. ",
    "If the answer falls sooner than when elements are taken away in random order, the attribution has found what the model really goes by. ",
    "Near 0 or below, or beaten by random orders, it has not."),
  drawn ? el("div", {class: "row"}, el("button", {onclick: drawn}, "Draw that test")) : null);
}

function method(found, one) {
  const most = Math.max(...one.shares.map(Math.abs), 1e-12);
  const chips = found.elements.map((element, at) => {
    const ink = el("span", {class: one.shares[at] < 0 ? "ink against" : "ink", "aria-hidden": "true"});
    ink.style.opacity = String(0.75 * Math.abs(one.shares[at]) / most);
    return el("span", {class: "chip", title: `${number(one.shares[at])}`}, ink, el("span", {class: "word"}, visible(element)));
  });
  const trust = one.faithfulness, believed = trust.score > 0.02 && trust.better_than_random > 0.8;
  const order = one.shares.map((share, at) => [share, found.elements[at]]).sort((a, b) => b[0] - a[0]);
  return el("div", {}, el("h3", {}, `By ${one.method}`), el("div", {class: "chips"}, chips),
    el("p", {class: "small"}, `Blue spoke for ${found.answer}, orange against it. Most for it: “${visible(order[0][1])}” (${number(order[0][0])}).`),
    el("p", {class: believed ? "good small" : "bad small"}, `Faithfulness ${number(trust.score)}: taking these elements away first changes the answer `
      + `sooner than ${percent(trust.better_than_random)} of random orders do. ${believed ? "It may be believed." : "Do not believe it here."}`));
}
