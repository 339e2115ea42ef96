// What was seen while an answer was computed: maps of attention, and gates and states over what was read.

import {el, fill, number, visible} from "./dom.js";
import {svg} from "./svg.js";

// --- attention ---

const TITLES = {self: "each element to all others", past: "each element to those before it", source: "the answer to what was read", pool: "the summary to what was read"};

// Records (…, rows, columns) of one softmax become a map a head. A step that writes has a row of its own, so records of
// the same place in the graph are put one below another.
export function attentionMaps(seen, read, written) {
  const places = new Map();
  for (const one of seen.attention) {
    const key = `${one.graph} ${one.name} ${one.place}`;
    places.set(key, [...(places.get(key) ?? []), one]);
  }
  const count = {};
  return [...places.values()].flatMap(records => {
    const {name, dims} = records[0], heads = dims.length === 4 ? dims[1] : 1, [rows, columns] = dims.slice(-2), number = count[name] = (count[name] ?? 0) + 1;
    if (name === "past" && records.length > 1) return [];  // its rows grow: what is written is shown by what it read
    const target = name === "source" ? written : name === "pool" ? Array.from({length: rows}, (_, row) => `summary ${row + 1}`) : read.slice(-rows);
    return Array.from({length: heads}, (_, head) => ({
      words: `${TITLES[name]}, layer ${number}${heads > 1 ? `, head ${head + 1}` : ""}`,
      source: read.slice(-columns).length === columns ? read.slice(-columns) : Array.from({length: columns}, (_, place) => String(place + 1)),
      target: target.slice(0, rows * records.length),
      weights: records.flatMap(({data}) => Array.from({length: rows}, (_, row) => Array.from(data.subarray((head * rows + row) * columns, (head * rows + row + 1) * columns)))),
    })).filter(map => map.target.length && map.source.length);
  });
}

// --- gates ---

const UNITS = 48, CELL = 9, WIDE = 30;

export function showGates(place, seen, names) {
  const all = seen.gates.flatMap((level, number) => Object.entries(level.gates).map(([gate, values]) =>
    ({...level, values, words: `${gate}, ${level.name} ${number + 1}${level.back ? ", backwards" : ""}`, signed: gate.endsWith("state")}))).filter(one => one.time === names.length);
  place.hidden = !all.length;
  if (!all.length) return;
  const picture = el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "Gates over what was read"});
  const show = number => fill(picture, heat(all[number], names));
  const chosen = Math.min(Number(place.querySelector("select")?.value ?? 0), all.length - 1);
  fill(place, el("h2", {}, "Gates and states"), el("p", {}, "A column for each element that was read, a row for each unit. Gates: the stronger the color, the further open. States: blue is positive, orange negative."),
    el("div", {class: "row"}, el("select", {"aria-label": "Which gate", onchange: event => show(Number(event.target.value))},
      all.map((one, number) => el("option", {value: number, selected: number === chosen}, one.words)))), picture);
  show(chosen);
}

function heat({values, size, words, signed}, names) {
  const units = Math.min(size, UNITS), most = signed ? Math.max(...values.map(Math.abs), 1e-9) : 1, drawn = [];
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  names.forEach((name, t) => {
    for (let unit = 0; unit < units; unit++) {
      const value = values[t * size + unit];
      drawn.push(svg("rect", {x: t * WIDE, y: unit * CELL, width: WIDE - 1, height: CELL - 1, class: value < 0 ? "against" : "for", "fill-opacity": Math.abs(value / most).toFixed(3)},
        svg("title", {}, `${visible(name)}, unit ${unit + 1}: ${number(value)}`)));
    }
    const label = visible(name);
    drawn.push(svg("text", {x: t * WIDE + WIDE / 2, y: units * CELL + 12, "text-anchor": "end", transform: `rotate(-40 ${t * WIDE + WIDE / 2} ${units * CELL + 12})`},
      label.length > 9 ? `${label.slice(0, 8)}…` : label));
  });
  const width = names.length * WIDE + 40, height = units * CELL + 60;
  return [svg("svg", {viewBox: `-40 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${words}: mean ${number(mean)}`}, drawn),
    size > units ? el("p", {class: "soft small"}, `The first ${units} of ${size} units.`) : null];
}
