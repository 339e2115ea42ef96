// Guess the next token of a text that the model has never seen. A visitor's guesses cost bits, as the model's do.
//
// The bits of a visitor: a right guess at the first, second … try, or none at all, is one of six outcomes; each costs
// -log2 of how often it has come so far (Krichevsky and Trofimov's estimate, which learns as it goes), and what was not
// guessed is then one of the letters that are left. So a decoder could rebuild the text: it is a fair price.

import {get, runPath} from "./api.js";
import {bars, el, fill, number, visible} from "./dom.js";

const TRIES = 5;

export const price = (outcomes, now) => -Math.log2((outcomes.filter(one => one === now).length + 0.5) / (outcomes.length + (TRIES + 1) / 2));

export async function showGuess(place, run, signal) {
  const body = el("section", {class: "guess"});
  let seed = Math.floor(Math.random() * 2 ** 31);
  fill(place, el("p", {}, "Guess what comes next, piece by piece, in a text that neither you nor the model has seen. You have five tries for each. ",
    "Your bits a character stand beside the model's and those of counted n-grams. A bit is the answer to one yes-or-no question: whoever knows better what comes needs fewer."), body);
  await begin();

  async function begin() {
    fill(body, el("p", {class: "soft"}, "Reading the test text …"));
    const told = await get(`${runPath(run.name)}/passage?seed=${seed}`, signal);
    play(told);
  }

  function play(told) {
    const outcomes = [], sums = {you: 0, model: 0, baseline: 0}, letters = told.unit === "characters";
    let at = 0, tried = [], characters = 0;
    const text = el("span"), note = el("p", {role: "status"}), score = el("div");
    const input = el("input", {id: "guess", autocomplete: "off", autocapitalize: "off", spellcheck: "false", ...(letters ? {maxlength: 1} : {})});
    const same = (mine, real) => letters ? mine === real : mine.trim() === real.trim();
    const form = el("form", {class: "row", onsubmit: event => { event.preventDefault(); tryOne(input.value); }},
      el("label", {for: "guess"}, letters ? "Next character" : "Next word or piece"), input, el("button", {class: "main"}, "Guess"),
      letters ? [el("button", {type: "button", onclick: () => tryOne(" ")}, "␣ space"), el("button", {type: "button", onclick: () => tryOne("\n")}, "⏎ new line")] : null,
      el("button", {type: "button", onclick: () => reveal(0)}, "Show me"));
    fill(body, el("p", {class: "passage"}, el("span", {class: "soft"}, told.before), text, "▁"), form, note, score);
    input.focus();

    function tryOne(guess) {
      input.value = "";
      input.focus();
      if (guess === "" || tried.includes(guess)) return;
      tried.push(guess);
      if (same(guess, told.tokens[at].text)) reveal(tried.length);
      else if (tried.length === TRIES) reveal(0);
      else note.textContent = `Not “${visible(guess)}”. ${TRIES - tried.length} more tries.`;
    }

    function reveal(rank) {
      const token = told.tokens[at];
      const missed = rank ? 0 : letters ? Math.log2(90) : 12;  // what it costs to spell out what was not guessed
      sums.you += price(outcomes, rank) + missed;
      outcomes.push(rank);
      sums.model += token.model;
      sums.baseline += token.baseline;
      characters += token.text.length;
      text.textContent += token.text;
      note.textContent = rank ? `✓ “${visible(token.text)}”. It cost the model ${number(token.model)} bits.`
        : `It is “${visible(token.text)}”. It cost the model ${number(token.model)} bits.`;
      tried = [];
      at += 1;
      tell(at === told.tokens.length);
    }

    function tell(over) {
      const rows = [["you", "you"], ["model", run.name], ["baseline", told.baseline]].map(([key, name]) =>
        ({name, value: sums[key] / characters, label: `${number(sums[key] / characters)} bits a character`, own: key === "you"}));
      const once = outcomes.filter(rank => rank === 1).length;
      fill(score, el("h2", {}, over ? "The end" : `After ${at} of ${told.tokens.length}`), bars(rows),
        el("p", {class: "soft small"}, `${once} of ${at} at the first try. Your bits are those of a code that only knows at which try you were right; `
          + "a few guesses say little, so play more than one."),
        over ? el("button", {class: "main", onclick: () => { seed += 1; begin(); }}, "Another passage") : null);
      if (over) form.hidden = true;
    }
  }
}
