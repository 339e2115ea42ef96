// Elements from JavaScript. Whatever comes from a model, a file or a visitor becomes a text node, never markup.

export function el(name, props = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (key === "value" || key === "checked") made[key] = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter(one => one !== null && one !== undefined && one !== false));
  return made;
}

export function fill(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(one => one !== null && one !== undefined && one !== false));
  return place;
}

// Whether this is a phone: what needs much room is folded away there.
export const narrow = matchMedia("(max-width: 40rem)");

// Numbers for people: four digits, or a share as a percentage.
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return value.toLocaleString("en", {maximumSignificantDigits: 4});
}

export const percent = value => value > 0 && value < 0.0005 ? "< 0.1 %" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;

// A token that can be seen: blanks and line ends are drawn, those with a meaning of their own are called by it.
const SPECIALS = {"<pad>": "(padding)", "<unk>": "(unknown)", "<sos>": "(start)", "<start>": "(start)", "<eos>": "(end)"};
export const visible = token => SPECIALS[token] ?? (token.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥") || "∅");

// Horizontal bars: rows of {name, value, label, own}, against the largest.
export function bars(rows, most = Math.max(...rows.map(row => row.value), 1e-12)) {
  return el("div", {class: "bars", role: "list"}, rows.map(row => {
    const ink = el("span", {class: row.own ? "fill own" : "fill"});
    ink.style.width = `${Math.max(0, Math.min(100, 100 * row.value / most))}%`;
    return [el("span", {class: "name", role: "listitem"}, row.name), el("span", {class: "track", "aria-hidden": "true"}, ink),
      el("span", {class: "value"}, row.label)];
  }));
}

// The distribution at a temperature: every log-probability divided by it, and all made to sum to one again.
export function tempered(logs, heat) {
  if (heat === 0) return logs.map((_, place) => place === 0 ? 1 : 0);
  const scaled = logs.map(log => (log ?? -Infinity) / heat), top = Math.max(...scaled);
  const powers = scaled.map(log => Math.exp(log - top)), sum = powers.reduce((a, b) => a + b, 0);
  return powers.map(power => power / sum);
}

// Call only after a pause: what is typed in one go is one question.
export function debounced(work, pause = 180) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => work(...given), pause); };
}

export function table(titles, rows, kind = "") {
  return el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": titles.join(", ")},
    el("table", {class: kind},
      el("thead", {}, el("tr", {}, titles.map(title => el("th", {scope: "col"}, title)))),
      el("tbody", {}, rows.map(row => el("tr", {}, row.map(cell => el("td", {}, cell)))))));
}
