// A series and its forecast: what was read, with gaps marked, the forecast and its intervals; a panel a variable.

import {el, fill, number} from "./dom.js";
import {svg, ticks} from "./svg.js";

const SHOWN = 6, WIDTH = 640, HEIGHT = 190, LEFT = 56, BOTTOM = 32, TOP = 8;

export function forecastChart(place, best, input, truth) {
  fill(place, Object.keys(best.values).slice(0, SHOWN).map((name, column) => panel(name, column, best, input.map(row => [row].flat()), truth?.[name])));
}

function panel(name, column, best, rows, truth) {
  const read = rows.map((row, i) => [i - rows.length + 1, row[column]]), known = read.filter(([, value]) => value !== null);
  const ahead = best.values[name].map((value, i) => [i + 1, value]), came = (truth ?? []).map((value, i) => [i + 1, value]).filter(([, value]) => value !== null);
  const levels = Object.keys(best.quantiles[name] ?? {}).map(Number).sort((a, b) => a - b), band = level => best.quantiles[name][String(level)];
  const pairs = levels.filter(level => level < 0.5).map(level => [level, levels.find(other => Math.abs(1 - level - other) < 1e-9)]).filter(([, other]) => other);
  const all = [...known, ...ahead, ...came].map(([, value]) => value).concat(pairs.flatMap(([low, high]) => [...band(low), ...band(high)]));
  const [low, high] = [Math.min(...all), Math.max(...all)], first = read[0]?.[0] ?? 0, last = ahead.length;
  const x = step => LEFT + (step - first) / (last - first || 1) * (WIDTH - LEFT - 10), y = value => TOP + (high - value) / (high - low || 1) * (HEIGHT - TOP - BOTTOM);
  const line = (points, kind) => svg("polyline", {points: points.map(([step, value]) => `${x(step)},${y(value)}`).join(" "), class: `line ${kind}`});
  const label = `${name}: ${known.length} values read, then a forecast of ${last} steps from ${number(ahead[0][1])} to ${number(ahead.at(-1)[1])}`;
  return el("figure", {}, el("figcaption", {}, name), svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label},
    ticks(low, high).map(tick => [svg("line", {x1: LEFT, x2: WIDTH - 10, y1: y(tick), y2: y(tick), class: "grid"}),
      svg("text", {x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end"}, number(tick))]),
    ticks(first, last, 6).map(tick => svg("text", {x: x(tick), y: HEIGHT - 16, "text-anchor": "middle"}, String(tick))),
    svg("text", {x: (LEFT + WIDTH) / 2, y: HEIGHT - 2, "text-anchor": "middle"}, "steps from now"),
    pairs.map(([a, b]) => svg("polygon", {class: "band", points: [...band(a).map((value, i) => [i + 1, value]), ...band(b).map((value, i) => [i + 1, value]).reverse()]
      .map(([step, value]) => `${x(step)},${y(value)}`).join(" ")})),
    read.filter(([, value]) => value === null).map(([step]) => svg("line", {x1: x(step), x2: x(step), y1: TOP, y2: HEIGHT - BOTTOM, class: "gap"})),
    line(known, "read"), line(ahead, "ahead"), line(came, "came")));
}
