// Pull it: set a gate, a unit of a state or an attention weight of the trained model to another value, and see the answer
// move. A pull holds for this page alone; the model stays as it is. The ledger keeps what each one did.

import {latest, post} from "./api.js";
import {debounced, el, fill, number, percent, table, visible} from "./dom.js";
import {inputForm} from "./input.js";
import {spanSearch} from "./spans.js";

// One line about an answer: what it is, and how sure.
export function say(predictions) {
  const best = predictions[0];
  if (!best) return "no answer";
  if (best.probability !== undefined) return `${visible(best.output)} (${percent(best.probability)})`;
  if (best.values) return Object.entries(best.values).map(([name, values]) => `${name} ${number(values[0])}`).join(", ");
  if (best.value !== undefined) return number(best.value);
  return `${best.output} (score ${number(best.score)})`;
}

export async function showPull(place, run, signal) {
  const body = el("section"), ledger = el("section"), rows = [], elsewhere = spanSearch(run.name);
  const load = latest();
  let given = null;
  const form = await inputForm(run, input => {
    given = input;
    elsewhere.update(input);
    return load(abort => post("/places", {run: run.name, input}, abort), told => controls(told.places),
      error => fill(body, el("p", {class: "error"}, error.message)));
  }, signal);
  fill(place, el("p", {}, "Change one number inside this trained model while it reads your input, and see what that does to its answer. ",
    "Nothing is saved: the model stays as it is."), form.place, body, ledger, elsewhere.place);
  form.begin();

  function controls(places) {
    const where = el("select", {id: "place"}, places.map((one, at) => el("option", {value: at}, one.name)));
    const step = el("select", {id: "step"}), unit = el("select", {id: "unit"}), head = el("select", {id: "head"});
    const slider = el("input", {id: "value", type: "range", step: 0.01}), said = el("output"), moved = el("p", {class: "answer", "aria-live": "polite"});
    const headRow = el("label", {for: "head"}, "head", head), was = el("span", {class: "soft small"}), now = el("p", {class: "soft"});
    const ask = latest();
    let last = null;

    const chosen = () => places[Number(where.value)];
    const values = (one, at) => one.kind === "attention" ? one.values?.[Number(head.value)]?.[at] : one.values?.[at];
    const current = () => {
      const one = chosen();
      if (step.value === "" || unit.value === "") return null;
      return values(one, Number(step.value))?.[Number(unit.value)] ?? null;
    };

    function pickPlace() {
      const one = chosen(), attention = one.kind === "attention";
      fill(step, attention ? null : el("option", {value: ""}, "every step"), one.steps.map((token, at) => el("option", {value: at}, `${at + 1}: ${visible(token)}`)));
      fill(unit, attention ? null : el("option", {value: ""}, "all units"), one.units.map((token, at) => el("option", {value: at}, attention ? `${at + 1}: ${visible(token)}` : `unit ${at + 1}`)));
      fill(head, attention ? one.values?.map((_, at) => el("option", {value: at}, `head ${at + 1}`)) : null);
      headRow.hidden = !attention || (one.values?.length ?? 1) < 2;
      step.value = attention ? "0" : String(Math.max(0, one.steps.length - 1));
      unit.value = attention ? "0" : "";
      pickUnit();
    }

    function pickUnit() {
      const one = chosen(), value = current(), state = one.kind === "state";
      slider.min = state ? (value === null ? 0 : -1) : 0;
      slider.max = value === null && state ? 2 : 1;
      slider.value = value ?? 1;
      slider.dataset.was = slider.value;  // as the slider has it, in its own steps
      was.textContent = value === null ? "all are multiplied with this; 1 changes nothing" : `it was ${number(value)}`;
      said.textContent = number(Number(slider.value));
      pull();
    }

    function pull() {
      const one = chosen(), value = Number(slider.value), scaled = current() === null;
      const asked = {place: one.place, step: step.value === "" ? null : Number(step.value), unit: unit.value === "" ? null : Number(unit.value),
        head: Number(head.value || 0), ...(scaled ? {scale: value} : {to: value})};
      said.textContent = number(value);
      return ask(abort => post("/pull", {run: run.name, input: given, pulls: [asked]}, abort), told => {
        const before = say(told.before.predictions), after = say(told.after.predictions);
        fill(now, "Without the pull: ", el("strong", {}, before));
        const still = scaled ? value === 1 : value === Number(slider.dataset.was);
        fill(moved, still ? "Nothing is changed yet: move the slider." : after === before ? "The answer does not move." : ["Now: ", el("strong", {}, after)]);
        last = [one.name, step.value === "" ? "every step" : visible(one.steps[asked.step]), unit.value === "" ? "all units" : one.kind === "attention"
          ? `to ${visible(one.units[asked.unit])}` : `unit ${asked.unit + 1}`, scaled ? `× ${number(value)}` : `${number(current() ?? NaN)} → ${number(value)}`, before, after];
        keep.disabled = still;
      }, error => fill(moved, el("span", {class: "error"}, error.message)));
    }

    const keep = el("button", {disabled: true, onclick: () => { rows.unshift(last); showLedger(); keep.disabled = true; }}, "Write it into the ledger");
    where.addEventListener("change", pickPlace);
    for (const one of [step, unit, head]) one.addEventListener("change", pickUnit);
    slider.addEventListener("input", debounced(pull, 80));
    fill(body, el("h2", {}, "Pull"), el("div", {class: "row"}, el("label", {for: "place"}, "Where", where), el("label", {for: "step"}, "while it reads", step),
      headRow, el("label", {for: "unit"}, "which", unit)),
    el("div", {class: "row"}, el("label", {for: "value"}, "to"), slider, said, was), now, moved, el("div", {class: "row"}, keep));
    pickPlace();
  }

  function showLedger() {
    fill(ledger, el("h2", {}, "What each pull did"), table(["where", "at", "which", "pulled", "answer before", "answer after"], rows, "ledger"));
  }
}
