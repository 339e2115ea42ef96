// A series and its forecast: what was read, with gaps marked, the forecast and its intervals; a panel a variable.

import {draw, widthOf} from "./chart.js";

const SHOWN = 6;  // variables

export async function forecastChart(place, best, input, truth) {
  const rows = input.map(row => [row].flat()), names = Object.keys(best.values).slice(0, SHOWN);
  const panels = names.map((name, column) => {
    const read = rows.map((row, step) => ({step: step - rows.length + 1, value: row[column], what: "read"}));
    const known = read.filter(one => one.value !== null);
    const gaps = read.filter(one => one.value === null);
    const ahead = best.values[name].map((value, step) => {
      const levels = Object.entries(best.quantiles[name] ?? {}).map(([level, values]) => [Number(level), values[step]]);
      const one = {step: step + 1, value, what: "forecast", when: best.times?.[step] ?? ""};
      levels.forEach(([level, found]) => { one[`q${Math.round(1000 * level)}`] = found; });
      return one;
    });
    const levels = Object.keys(best.quantiles[name] ?? {}).map(Number).sort((a, b) => a - b);
    const bands = levels.filter(level => level < 0.5 && levels.some(other => Math.abs(1 - level - other) < 1e-9));
    const x = {field: "step", type: "quantitative", title: "steps from now"};
    const y = field => ({field, type: "quantitative", title: name, scale: {zero: false}});
    return {width: widthOf(place, 560), height: 170, layer: [
      ...bands.map(level => ({data: {values: ahead}, mark: {type: "area", opacity: 0.22, color: "#D55E00", tooltip: true},
        encoding: {x, y: y(`q${Math.round(1000 * level)}`), y2: {field: `q${Math.round(1000 * (1 - level))}`}}})),
      {data: {values: known}, mark: {type: "line", color: "#0072B2", point: known.length < 80 && {color: "#0072B2"}, tooltip: true}, encoding: {x, y: y("value")}},
      {data: {values: ahead}, mark: {type: "line", color: "#D55E00", point: {color: "#D55E00"}, tooltip: true}, encoding: {x, y: y("value")}},
      ...(truth?.[name] ? [{data: {values: truth[name].map((value, step) => ({step: step + 1, value, what: "what came"}))},
        mark: {type: "line", color: "#009E73", strokeDash: [5, 3], tooltip: true}, encoding: {x, y: y("value")}}] : []),
      ...(gaps.length ? [{data: {values: gaps}, mark: {type: "rule", color: "#CC0000", strokeDash: [3, 3], tooltip: {content: "data"}},
        encoding: {x: {field: "step", type: "quantitative"}}}] : []),
    ]};
  });
  await draw(place, {vconcat: panels});
}
