// Pull it: set a gate, a unit of a state or an attention weight of the trained model to another value, and see the answer
// move. A pull holds for this page alone; the model stays as it is. The ledger keeps what each one did.

import {brief, moved, showMove} from "./answers.js";
import {latest, post} from "./api.js";
import {debounced, el, fill, number, table, visible} from "./dom.js";
import {inputForm} from "./input.js";
import {spanSearch} from "./spans.js";

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

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
  fill(place, el("p", {}, "Change numbers inside this trained model while it reads your input, and see what that does to its answer: ",
    "so you find out which part does what. Nothing is saved: the model stays as it is."), form.place, body, ledger, elsewhere.place);
  form.begin();

  function controls(places) {
    const where = el("select", {id: "place"}, places.map((one, at) => el("option", {value: at}, one.name)));
    const step = el("select", {id: "step"}), unit = el("select", {id: "unit"}), head = el("select", {id: "head"});
    const slider = el("input", {id: "value", type: "range", step: 0.01}), said = el("output"), answer = el("p", {class: "answer", "aria-live": "polite"});
    const how = el("label", {for: "value"}), drawn = el("div"), headRow = el("label", {for: "head"}, "head", head), was = el("span", {class: "soft small"}), now = el("p", {class: "soft"});
    const ask = latest(), sweeping = latest();
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
      fill(unit, attention ? null : el("option", {value: ""}, "all units"), one.units.map((token, at) => el("option", {value: at}, attention ? `its look at ${at + 1}: ${visible(token)}` : `unit ${at + 1}`)));
      fill(head, attention ? one.values?.map((_, at) => el("option", {value: at}, `head ${at + 1}`)) : null);
      headRow.hidden = !attention || (one.values?.length ?? 1) < 2;
      step.value = attention ? "0" : "";
      unit.value = attention ? "0" : "";
      pickUnit();
    }

    function pickUnit() {
      const one = chosen(), value = current(), state = one.kind === "state";
      slider.min = state ? (value === null ? 0 : -1) : 0;
      slider.max = value === null && state ? 2 : 1;
      slider.value = value ?? 1;
      slider.dataset.was = slider.value;  // as the slider has it, in its own steps
      how.textContent = value === null ? "multiplied by" : "set to";
      was.textContent = value !== null ? `it was ${number(value)}${one.kind === "attention" ? "; the other weights share the rest" : ""}`
        : `1 leaves ${state ? "it" : "the gate"} as it is, 0 ${state ? "wipes it out" : "closes it"}`;
      said.textContent = number(Number(slider.value));
      pull();
    }

    function pull() {
      const one = chosen(), value = Number(slider.value), scaled = current() === null;
      const asked = {place: one.place, step: step.value === "" ? null : Number(step.value), unit: unit.value === "" ? null : Number(unit.value),
        head: Number(head.value || 0), ...(scaled ? {scale: value} : {to: value})};
      said.textContent = number(value);
      return ask(abort => post("/pull", {run: run.name, input: given, pulls: [asked]}, abort), told => {
        const before = told.before.predictions, after = told.after.predictions;
        fill(now, "Without the pull: ", el("strong", {}, brief(before)));
        const still = scaled ? value === 1 : value === Number(slider.dataset.was);
        fill(answer, still ? "Nothing is changed yet: move the slider." : same(before, after) ? "The answer does not move." : ["Now: ", el("strong", {}, moved(before, after))]);
        last = [one.name, step.value === "" ? "every step" : visible(one.steps[asked.step]), unit.value === "" ? "all units" : one.kind === "attention"
          ? `to ${visible(one.units[asked.unit])}` : `unit ${asked.unit + 1}`, scaled ? `× ${number(value)}` : `${number(current() ?? NaN)} → ${number(value)}`, before, after];
        keep.disabled = still;
        return showMove(drawn, before, after, given);
      }, error => fill(answer, el("span", {class: "error"}, error.message)));
    }

    // Every gate and state once, closed from the first step to the last: where to begin.
    const sweep = el("button", {onclick: async () => {
      sweep.disabled = true;
      for (const one of places.filter(one => one.kind !== "attention")) {
        await sweeping(abort => post("/pull", {run: run.name, input: given, pulls: [{place: one.place, scale: 0}]}, abort), told => {
          rows.unshift([one.name, "every step", "all units", "× 0", told.before.predictions, told.after.predictions]);
          showLedger();
        }, error => fill(answer, el("span", {class: "error"}, error.message)));
        if (!sweep.isConnected) return;  // another input, or another page
      }
      sweep.disabled = false;
    }}, "Close each of them once");

    const keep = el("button", {disabled: true, onclick: () => { rows.unshift(last); showLedger(); keep.disabled = true; }}, "Write it into the ledger");
    where.addEventListener("change", pickPlace);
    for (const one of [step, unit, head]) one.addEventListener("change", pickUnit);
    slider.addEventListener("input", debounced(pull, 80));
    const many = places.filter(one => one.kind !== "attention").length;
    fill(body, el("h2", {}, "Pull"), many > 1 ? el("div", {class: "row"}, el("span", {}, `Not sure where to begin? There are ${many} gates and states.`), sweep) : null,
      el("div", {class: "row"}, el("label", {for: "place"}, "Where", where)),
      el("div", {class: "row"}, el("label", {for: "step"}, "while it reads", step), headRow, el("label", {for: "unit"}, "in", unit)),
      el("div", {class: "row"}, how, slider, said, was), now, answer, drawn, el("div", {class: "row"}, keep));
    pickPlace();
  }

  function showLedger() {
    fill(ledger, el("h2", {}, "What each pull did"), table(["where", "at", "which", "pulled", "answer before", "answer after"],
      rows.map(row => [...row.slice(0, 4), row[4][0]?.tags ? `${row[4][0].tags.length} tags` : brief(row[4]), same(row[4], row[5]) ? "the same" : moved(row[4], row[5])]), "ledger"));
  }
}
