"""How the page of a report looks, and the few lines that draw its charts. Text alone."""

STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --text: #1b1b1b; --soft: #5a5a5a; --line: #d9d9d9; --link: #0060a0;
  --tint: #f4f6f8 }
@media (prefers-color-scheme: dark) { :root { --ground: #1e1f22; --text: #ececec; --soft: #b0b0b0; --line: #45474d;
  --link: #7cc4f5; --tint: #2a2c31 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; background: var(--ground);
  color: var(--text); overflow-wrap: break-word }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 } h2 { margin: 2.5rem 0 .5rem; border-bottom: 1px solid
  var(--line) } h3 { margin: 1.5rem 0 .25rem; font-size: 1.05rem }
header p, .said { color: var(--soft); margin: .2rem 0 } .how { margin: .2rem 0 } .said { font-size: .9rem }
a { color: var(--link) } nav ol { padding-left: 1.4rem; columns: 2 18rem }
figure { margin: 1rem 0 2rem } .wide { overflow-x: auto; max-width: 100% }
.chart { margin-top: .5rem; min-height: 6rem }
table { border-collapse: collapse; font-size: .92rem } th, td { text-align: left; vertical-align: top; padding: .3rem
  .9rem .3rem 0; border-bottom: 1px solid var(--line); min-width: 5rem }
td img { width: 96px; image-rendering: pixelated }
.token { font-family: ui-monospace, monospace; font-size: .9em; white-space: pre-wrap; display: inline-block; max-width:
  26rem; overflow-wrap: anywhere }
pre { background: var(--tint); padding: .8rem; font-size: .85rem; line-height: 1.4 }
summary { cursor: pointer; color: var(--link) } .vega-bind { display: block; margin: .3rem 0; font-size: .9rem }
.vega-embed summary { color: inherit } @media print { nav, details.folded { display: none } }
"""

# A chart is drawn when it comes near the window, or all of them before printing: as SVG, so that its words can be read
# aloud, found and copied. Expressions are interpreted, not compiled: the page needs no right to make code from text.
DRAW = """
const specs = JSON.parse(document.getElementById("charts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const views = {};
async function draw(name) {
  const place = document.getElementById("chart-" + name), spec = specs[name];
  if (typeof spec === "string") { place.textContent = spec; return; }
  const options = {theme: dark.matches ? "dark" : undefined, config: {background: "transparent"}, renderer: "svg",
    ast: true, actions: {export: true, source: false, compiled: false, editor: false}};
  try { views[name] = (await vegaEmbed(place, spec, options)).view; } catch (error) { console.error(name, error); }
}
async function drawAll() { for (const name of Object.keys(specs)) if (!views[name]) await draw(name); }
const near = new IntersectionObserver(seen => {
  for (const {isIntersecting, target} of seen) if (isIntersecting) { near.unobserve(target); draw(target.id.slice(6)); }
}, {rootMargin: "800px"});
for (const name of Object.keys(specs)) near.observe(document.getElementById("chart-" + name));
dark.addEventListener("change", () => { for (const name of Object.keys(views)) draw(name); });
addEventListener("beforeprint", drawAll);
"""
