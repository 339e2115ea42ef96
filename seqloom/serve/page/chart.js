// Charts by Vega: its script is loaded when the first one is drawn. Expressions are interpreted, not compiled, so that
// the page needs no right to make code from text.

import {el, fill} from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const TRIES = 4;  // to load it: its server may have to put it together first
let library = null;
const drawn = new Map();  // place -> definition, to draw it again when day turns to night

const script = () => new Promise((resolve, reject) => {
  document.head.append(el("script", {src: "/vega.js", onload: resolve, onerror: () => reject(new Error("the charts' library did not load"))}));
});

async function loadAnew(tries = TRIES) {
  try {
    await script();
  } catch (error) {
    if (tries > 1) return loadAnew(tries - 1);
    library = null;
    throw error;
  }
}

const load = () => library ??= loadAnew();

// The width of a chart that is drawn here: the place's own, without what axes and a legend need.
export const widthOf = (place, most, beside = 80) => Math.max(180, Math.min(most, place.clientWidth - beside));

export async function draw(place, spec) {
  await load();
  drawn.set(place, spec);
  const options = {ast: true, renderer: "svg", actions: false, defaultStyle: false, theme: dark.matches ? "dark" : undefined,
    tooltip: {disableDefaultStyle: true},
    config: {background: "transparent", axis: {labelFontSize: 12, titleFontSize: 13, ...(dark.matches ? {gridColor: "#45474d"} : {})}, legend: {labelFontSize: 12, titleFontSize: 13},
      header: {labelFontSize: 12}, title: {fontSize: 13}}};
  await window.vegaEmbed(place, spec, options);
}

dark.addEventListener("change", () => {
  for (const [place, spec] of drawn) place.isConnected ? draw(place, spec) : drawn.delete(place);
});

// A view of the registry: its title, how to read it, and the chart or drawing itself.
export async function figure(place, told) {
  const chart = el("div", {class: "wide chart", tabindex: "0", role: "region", "aria-label": told.title});
  fill(place, el("figure", {}, el("figcaption", {}, el("h3", {}, told.title), el("p", {}, told.reading),
    told.lines.map(line => el("p", {class: "soft small"}, line))), chart));
  if (told.svg) {
    const source = URL.createObjectURL(new Blob([told.svg], {type: "image/svg+xml"}));
    fill(chart, el("img", {class: "drawing", src: source, alt: told.title, onload: () => URL.revokeObjectURL(source)}));
  } else await draw(chart, told.spec);
}
