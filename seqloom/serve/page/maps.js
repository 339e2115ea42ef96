// Maps of attention as words that light up: point at one, or move to it by keyboard, and see what it attended to.

import {el, fill, percent, visible} from "./dom.js";

// Maps {words, source, target, weights, image}, of which one is shown; `image` is {picture, grid} where squares of one are
// attended to.
export function chooseMap(place, maps, chosen, remember) {
  const words = el("div");
  const choose = el("select", {"aria-label": "Which attention", onchange: event => {
    const number = Number(event.target.value);
    remember(number);
    lay(words, maps[number], maps[number].image);
  }}, maps.map((one, number) => el("option", {value: number, selected: number === chosen}, one.words)));
  fill(place, el("h2", {}, "What it attended to"), el("p", {},
    `Point at a word of the answer, or move to it with Tab: the ${maps[chosen].image ? "lighter the square" : "stronger the color above"}, the more it was attended to.`),
  maps.length > 1 ? choose : null, words);
  lay(words, maps[chosen], maps[chosen].image);
}

function lay(place, map, image) {
  const over = image && overlay(image);
  const itself = map.source.join("\u0000") === map.target.join("\u0000");
  const note = el("p", {class: "soft small", role: "status"});
  const chips = (names, touched) => names.map((token, at) => {
    const ink = el("span", {class: "ink", "aria-hidden": "true"});
    const look = () => touched(at);
    return el("button", {type: "button", class: "chip", onmouseenter: look, onfocus: look, onclick: look}, ink, el("span", {class: "word"}, visible(token)));
  });
  const paint = (some, weights) => some.forEach((chip, at) => {
    chip.classList.remove("on");
    chip.firstChild.style.opacity = String(0.75 * (weights?.[at] ?? 0));
  });
  const most = weights => weights.indexOf(Math.max(...weights));
  const fromTarget = row => {
    const weights = map.weights[row];
    paint(targets, null);
    paint(sources, weights);
    over?.paint(weights);
    targets[row].classList.add("on");
    const best = most(weights), source = over ? over.name(best) : `“${visible(map.source[best])}”`;
    note.textContent = `“${visible(map.target[row])}” attended most to ${source} (${percent(weights[best])}).`;
  };
  const fromSource = column => {
    const weights = map.weights.map(row => row[column]);
    if (itself) return fromTarget(column);
    paint(sources, null);
    paint(targets, weights);
    sources[column].classList.add("on");
    note.textContent = `“${visible(map.source[column])}” was attended to most by “${visible(map.target[most(weights)])}” (${percent(Math.max(...weights))}).`;
  };
  const sources = chips(map.source, fromSource), targets = chips(map.target, fromTarget);
  fill(place, itself || over ? null : el("p", {class: "soft small"}, "Read:"), over ? over.place : el("div", {class: "chips"}, sources),
    el("p", {class: "soft small"}, itself ? "Who attends:" : "Answered:"), el("div", {class: "chips"}, targets), note);
  fromTarget(0);
}

// The image that was read: the less a square is attended to, the darker it is.
function overlay({picture, grid: [rows, columns]}) {
  const cells = Array.from({length: rows * columns}, () => el("span")), grid = el("div", {class: "grid", "aria-hidden": "true"}, cells);
  grid.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  const paint = weights => {
    const most = Math.max(...weights);
    cells.forEach((cell, at) => { cell.style.opacity = String(0.85 * (1 - weights[at] / most)); });
  };
  const name = at => `the square in row ${Math.floor(at / columns) + 1}, column ${at % columns + 1}`;
  return {name, place: el("div", {class: "over"}, el("img", {class: "pixels", src: picture, alt: "the image that is read"}), grid), paint};
}
