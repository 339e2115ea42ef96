// Maps of attention as words that light up: point at one, or move to it by keyboard, and see what it attended to.

import {canvasOf} from "./answers.js";
import {el, fill, percent, visible} from "./dom.js";

const END = "<eos>";

// Maps {words, source, target, weights, image, pixels}, of which one is shown; `image` is {picture, grid} where squares of
// one are attended to, `pixels` those of the image where one was drawn.
export function chooseMap(place, maps, chosen, remember) {
  const words = el("div");
  const choose = el("select", {"aria-label": "Which attention", onchange: event => {
    const number = Number(event.target.value);
    remember(number);
    lay(words, maps[number], maps[number].image);
  }}, maps.map((one, number) => el("option", {value: number, selected: number === chosen}, one.words)));
  fill(place, el("h2", {}, "What it attended to"), el("p", {},
    `Point at a ${maps[chosen].pixels ? "square of the drawing" : "word of the answer"}, or move to it with Tab: the ${maps[chosen].image ? "lighter the square" : "stronger the color above"}, the more it was attended to.`),
  maps.length > 1 ? choose : null, words);
  lay(words, maps[chosen], maps[chosen].image);
}

function lay(place, map, image) {
  const over = image && overlay(image);
  const drawn = squares(map.pixels, map.target.filter(token => token !== END).length);
  const said = at => drawn && map.target[at] !== END ? drawn.name(at) : `“${visible(map.target[at])}”`;
  const itself = map.source.join("\u0000") === map.target.join("\u0000");
  const note = el("p", {class: "soft small", role: "status"});
  const chips = (names, touched, tiles = null) => names.map((token, at) => {
    const ink = el("span", {class: "ink", "aria-hidden": "true"});
    const look = () => touched(at);
    return el("button", {type: "button", class: tiles && token === END ? "chip end" : "chip", onmouseenter: look, onfocus: look, onclick: look}, ink,
      tiles && token !== END ? tiles.cut(at) : el("span", {class: "word"}, visible(token)));
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
    note.textContent = `${capital(said(row))} attended most to ${source} (${percent(weights[best])}).`;
  };
  const fromSource = column => {
    const weights = map.weights.map(row => row[column]);
    if (itself) return fromTarget(column);
    paint(sources, null);
    paint(targets, weights);
    sources[column].classList.add("on");
    note.textContent = `“${visible(map.source[column])}” was attended to most by ${said(most(weights))} (${percent(Math.max(...weights))}).`;
  };
  const sources = chips(map.source, fromSource), targets = chips(map.target, fromTarget, drawn);
  const answered = el("div", {class: drawn ? "chips squares" : "chips"}, targets);
  if (drawn) answered.style.gridTemplateColumns = `repeat(${drawn.columns}, max-content)`;
  fill(place, itself || over ? null : el("p", {class: "soft small"}, "Read:"), over ? over.place : el("div", {class: "chips"}, sources),
    el("p", {class: "soft small"}, itself ? "Who attends:" : drawn ? "Drawn, square by square:" : "Answered:"), answered, note);
  fromTarget(0);
}

const capital = words => words[0].toUpperCase() + words.slice(1);

const inGrid = (at, columns) => `the square in row ${Math.floor(at / columns) + 1}, column ${at % columns + 1}`;

// The squares that an image was drawn in, if it was: each as a small picture, and its place in words.
function squares(pixels, count) {
  const side = pixels && Math.sqrt(pixels.length * pixels[0].length / count);
  if (!pixels || !Number.isInteger(side)) return null;
  const columns = pixels[0].length / side;
  const cut = at => canvasOf(pixels.slice(side * Math.floor(at / columns)).slice(0, side).map(row => row.slice(side * (at % columns)).slice(0, side)));
  return {columns, cut, name: at => inGrid(at, columns)};
}

// The image that was read: the less a square is attended to, the darker it is.
function overlay({picture, grid: [rows, columns]}) {
  const cells = Array.from({length: rows * columns}, () => el("span")), grid = el("div", {class: "grid", "aria-hidden": "true"}, cells);
  grid.style.gridTemplateColumns = `repeat(${columns}, 1fr)`;
  const paint = weights => {
    const most = Math.max(...weights);
    cells.forEach((cell, at) => { cell.style.opacity = String(0.85 * (1 - weights[at] / most)); });
  };
  return {name: at => inGrid(at, columns), place: el("div", {class: "over"}, el("img", {class: "pixels", src: picture, alt: "the image that is read"}), grid), paint};
}
