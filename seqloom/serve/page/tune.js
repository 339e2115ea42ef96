// A tune: its notes over time, and a button that plays them. The sound is made here, by the browser.

import {post} from "./api.js";
import {draw, widthOf} from "./chart.js";
import {el, fill} from "./dom.js";

export async function showTune(place, text, signal) {
  let sounds;
  try {
    ({sounds} = await post("/tune", {text}, signal));
  } catch (error) {
    return fill(place, el("p", {class: "bad"}, `This is no tune that could be played yet: ${error.message}`));
  }
  const chart = el("div", {class: "wide chart", tabindex: "0", role: "region", "aria-label": `${sounds.length} notes over time`});
  const button = el("button", {class: "main"}, "▶ Play");
  let player = null;
  const stop = () => { player?.close(); player = null; button.textContent = "▶ Play"; };
  button.addEventListener("click", () => {
    if (player) return stop();
    player = play(sounds, stop);
    button.textContent = "■ Stop";
  });
  signal.addEventListener("abort", stop);
  fill(place, el("div", {class: "row"}, button, el("span", {class: "soft small"}, `${sounds.length} notes`)), chart);
  await draw(chart, {data: {values: sounds}, width: widthOf(chart, 640), height: 220, mark: {type: "bar", height: 5, cornerRadius: 2, tooltip: true},
    encoding: {x: {field: "start", type: "quantitative", title: "seconds"}, x2: {field: "end"},
      y: {field: "pitch", type: "quantitative", title: "pitch", scale: {zero: false}, axis: {tickMinStep: 1}}, color: {value: "#0072B2"}}});
}

// Each note a soft tone: a triangle wave with a short rise and a fall.
function play(sounds, done) {
  const context = new AudioContext(), begin = context.currentTime + 0.1;
  let last = null;
  for (const sound of sounds) {
    const tone = context.createOscillator(), loud = context.createGain(), start = begin + sound.start, end = begin + sound.end;
    tone.type = "triangle";
    tone.frequency.value = 440 * 2 ** ((sound.pitch - 69) / 12);
    loud.gain.setValueAtTime(0, start);
    loud.gain.linearRampToValueAtTime(0.25, start + 0.015);
    loud.gain.exponentialRampToValueAtTime(0.001, Math.max(start + 0.03, end));
    tone.connect(loud).connect(context.destination);
    tone.start(start);
    tone.stop(Math.max(start + 0.03, end));
    if (!last || end > last.end) last = {end, tone};
  }
  if (last) last.tone.addEventListener("ended", done);
  return context;
}
