// An answer in the form that it has: labels with their probabilities, tagged words, a text token by token, a number, a
// forecast, an image. The form is read off the fields of the JSON, not off the task.

import {bars, el, fill, number, percent, visible} from "./dom.js";
import {forecastChart} from "./forecast.js";

export async function showAnswer(place, answer, input, target, ahead = null) {
  const [best, ...others] = answer.predictions;
  if (!best) return fill(place, el("p", {class: "soft"}, "No answer."));
  const unread = answer.unread ? el("p", {class: "bad small"}, `${answer.unread} elements at the end were not read: the input is too long.`) : null;
  if (best.quantiles) return showForecast(place, best, input, ahead, unread);
  fill(place, verdict(best, target), body(best, others, target), unread);
}

function verdict(best, target) {
  const words = best.pixels || best.tags ? null : [el("p", {class: "soft small"}, "The model answers:"),
    el("p", {class: "answer"}, el("strong", {}, best.output === "" ? "(nothing)" : best.output))];
  if (!target || best.value !== undefined || best.pixels || best.tags) return words;
  const right = best.output === target;
  return [words, el("p", {class: right ? "good" : "bad"}, right ? "✓ right" : "✗ wrong")];
}

function body(best, others, target) {
  if (best.tags) return tagged(best, target ?? "");
  if (best.pixels) return [el("p", {class: "soft small"}, "What it draws:"), canvasOf(best.pixels)];
  if (best.probabilities) return bars(Object.entries(best.probabilities).sort((a, b) => b[1] - a[1]).slice(0, 12)
    .map(([name, value]) => ({name, value, label: percent(value), own: value > 0.5})), 1);
  if (best.value !== undefined) return el("p", {}, `${number(best.value)}, give or take ${number(best.spread)} (one standard deviation)`);
  if (best.tokens) return [el("p", {class: "soft small"}, "Token by token: the stronger the color, the surer."), tokens(best),
    others.length ? el("details", {}, el("summary", {}, `${others.length} other answer${others.length > 1 ? "s" : ""} that the beam kept`),
      el("ol", {}, others.map(one => el("li", {}, one.output, " ", el("span", {class: "soft small"}, `probability ${percent(one.probability)}`))))) : null];
  if (best.probability !== undefined) return bars([best, ...others].map((one, place) =>
    ({name: one.output, value: one.probability, label: percent(one.probability), own: place === 0})), 1);
  return null;
}

// Words with their tags; where the right ones are known, those that are wrong say so.
function tagged(best, target) {
  const right = target.split(" ").map(pair => pair.slice(pair.lastIndexOf("/") + 1));
  const known = right.length === best.tags.length;
  const wrong = known ? best.tags.filter((tag, place) => tag !== right[place]).length : 0;
  return [known ? el("p", {class: wrong ? "bad" : "good"}, wrong ? `✗ ${wrong} of ${right.length} tags are wrong` : "✓ all tags are right") : null,
    el("div", {class: "chips"}, best.tags.map((tag, place) => el("span", {class: "chip"},
      el("span", {class: "word"}, visible(best.words[place] ?? String(place + 1))),
      el("small", {}, tag, known && tag !== right[place] ? el("span", {class: "bad"}, ` not ${right[place]}`) : null))))];
}

export function tokens(best) {
  return el("div", {class: "chips"}, best.tokens.map((token, place) => {
    const sure = Math.exp(best.logs[place] ?? 0), ink = el("span", {class: "ink", "aria-hidden": "true"});
    ink.style.opacity = String(0.55 * sure);
    return el("span", {class: "chip", title: `probability ${percent(sure)}`}, ink, el("span", {class: "word"}, visible(token)));
  }));
}

// One line about an answer: what it is, and how sure; or the image that was drawn.
export function brief(predictions) {
  const best = predictions[0];
  if (!best) return "no answer";
  if (best.pixels) return canvasOf(best.pixels);
  if (best.tags) return best.tags.join(" ");
  if (best.probability !== undefined) return `${visible(best.output)} (probability ${percent(best.probability)})`;
  if (best.values) return Object.entries(best.values).map(([name, values]) => `${name}: next ${number(values[0])}, after ${values.length} steps ${number(values.at(-1))}`).join("; ");
  if (best.value !== undefined) return number(best.value);
  return `${visible(best.output)} (probability ${percent(Math.exp(best.score))})`;
}

// What an answer has become, beside what it was: of tags only those that differ, of labels how far each has moved.
export function moved(before, after) {
  const [was, is] = [before[0], after[0]];
  if (!was?.tags || !is?.tags) return brief(after);
  const other = is.tags.flatMap((tag, at) => tag === was.tags[at] ? [] : [`${visible(is.words[at] ?? String(at + 1))}: ${was.tags[at]} → ${tag}`]);
  return other.length ? [other.join(", "), el("span", {class: "soft small"}, ` (${other.length} of ${is.tags.length} tags)`)] : "the same tags, a little more or less sure";
}

// The same drawn, where there is something to draw: bars of labels before and after, or both forecasts.
export async function showMove(place, before, after, input) {
  const [was, is] = [before[0], after[0]];
  if (is?.quantiles) {
    const chart = el("div", {class: "wide chart", tabindex: "0", role: "region", "aria-label": "The forecast with the pull and without it"});
    fill(place, el("p", {class: "soft small"}, "Orange: the forecast with the pull. Green: without it."), chart);
    return forecastChart(chart, is, input, was.values);
  }
  const chances = answers => new Map(answers[0]?.probabilities ? Object.entries(answers[0].probabilities) : answers.map(one => [one.output, one.probability]));
  if (is?.tags || is?.tokens || is?.pixels || is?.probability === undefined) return fill(place);
  const [old, now] = [chances(before), chances(after)];
  fill(place, bars([...now].map(([name, value], at) => ({name, value, own: at === 0,
    label: `${percent(value)}${old.has(name) ? `, was ${percent(old.get(name))}` : ""}`})), 1));
}

export function canvasOf(pixels, says = "the image that was drawn") {
  const height = pixels.length, width = pixels[0].length, canvas = el("canvas", {class: "pixels", width, height, role: "img", "aria-label": says});
  const context = canvas.getContext("2d"), data = context.createImageData(width, height);
  pixels.flat().forEach((pixel, place) => {
    const [red, green, blue] = Array.isArray(pixel) ? (pixel.length === 3 ? pixel : [pixel[0], pixel[0], pixel[0]]) : [pixel, pixel, pixel];
    data.data.set([red, green, blue, 255], 4 * place);
  });
  context.putImageData(data, 0, 0);
  return canvas;
}

async function showForecast(place, best, input, ahead, unread) {
  const chart = el("div", {class: "wide chart", tabindex: "0", role: "region", "aria-label": "The series and its forecast"});
  fill(place, el("p", {}, `Blue: what was read. Orange: the forecast${band(best)}.${ahead ? " Green: what really came." : ""}`
    + `${input.flat().includes(null) ? " Red: a value is missing." : ""}`), chart, unread);
  await forecastChart(chart, best, input, ahead);
}

// The widest band of a forecast, in words.
function band(best) {
  const levels = Object.keys(Object.values(best.quantiles)[0] ?? {}).map(Number), low = Math.min(...levels), high = Math.max(...levels);
  return low < high ? `, with the band that the truth should lie in ${percent(high - low)} of the time` : "";
}
