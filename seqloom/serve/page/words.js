// What scores and baselines are called, in a sentence each, for whoever meets these words here for the first time.

import {el} from "./dom.js";

const SCORES = {
  accuracy: "how many of all are right", exact: "how many answers are right from the first token to the last", "all right": "how many examples have all their labels right",
  "macro F1": "precision and recall of each class in one number, every class counting alike", "micro F1": "precision and recall in one number, every label counting alike",
  "entity F1": "precision and recall of whole names, all their words right",
  "token error rate": "how many tokens have to be put in, taken out or replaced, for each token of the right answer", TER: "the same with words, moved ones counted once",
  BLEU: "how many short runs of words the answers share with the right ones", "sentence BLEU": "BLEU sentence by sentence", chrF: "the same with short runs of letters",
  perplexity: "among how many equally likely tokens the model seems to choose at each step", "bits per character": "how many yes-or-no questions it takes to tell the model the next letter",
  "nats a square": "how surprised the model is by each small square of a real image", "nats a step": "how surprised the model is by each chord",
  "read right": "how many of its drawings look like what they should be", "well formed": "how many of its tunes can be played as they are",
  copied: "how many of its tunes stand in the training data as they are", "longest copied run": "how much of a tune is copied in one go",
  MAE: "how far off the forecast is, on average", RMSE: "the same, large errors counting more", "absolute error": "how far off the number is, on average",
  "root mean square error": "the same, large errors counting more", MSE: "the average of the squared errors", MASE: "the error, measured by that of repeating the last season",
  "quantile loss": "how far off the whole band of the forecast is", coverage: "how often the truth lies in the band", "R²": "how much of the ups and downs is explained",
};

const BASELINES = {
  "most frequent": "always the commonest answer of training", chance: "guessing blindly", copy: "the input itself", mean: "always the mean of training",
  "bag of pairs": "counts of words and pairs of neighbors (naive Bayes)", "NB-SVM": "the same counts, weighed by a linear classifier", "nearest mean": "the class whose average looks most alike",
  "tag of the word": "the tag that each word had most often", uniform: "every token alike", unigram: "how often each token occurs, whatever stands before it",
  persistence: "the last value, again and again", "seasonal naive": "the last season once more", "linear autoregression": "a weighted sum of the last values",
  "training quantiles": "how the values were spread in training", constant: "one caption for every image", "most alike": "the caption of the training image that looks most alike",
  "squares alone": "how often each square occurs, whatever was asked for", "frame frequency": "how often each key sounds", "the last frame again": "the last chord once more",
  "real images": "not a baseline: what real ones reach", "real tunes": "not a baseline: what real ones reach",
};

const bare = name => name.replace(/ \(.*\)$/, "").replace(/ of .*$/, "");
const counted = name => name.match(/^(\d+)-gram$/)?.[1];

const meaning = (kind, name) => kind[name] ?? (counted(name) ? `how often each token came after the ${counted(name) - 1} before it` : null);

// Real examples are not beaten, they are what could be reached.
export const isReference = name => name.startsWith("real ");

// All words that stand beside the scores of a run, each once.
export function glossary(scores) {
  const rows = (kind, names) => [...new Set(names)].map(name => [name, meaning(kind, name)]).filter(([, says]) => says)
    .map(([name, says]) => el("li", {}, el("strong", {}, name), `: ${says}.`));
  const names = Object.keys(scores).map(bare), others = Object.values(scores).flatMap(score => Object.keys(score.baselines));
  return el("details", {}, el("summary", {}, "What do these words mean?"), el("ul", {}, rows(SCORES, names)),
    el("p", {}, "A baseline is an answer that takes no network, so a model that is worth its training beats it:"), el("ul", {}, rows(BASELINES, others)),
    el("p", {}, "95 %: with other test examples of the same kind, the score would lie between these two numbers nineteen times in twenty."));
}

// "lstm 96 × 1" in words; another way of saying it is left as it is.
export const network = said => said.replace(/(\d+) × (\d+)/g, (_, size, depth) => `of size ${size}, ${depth} layer${depth === "1" ? "" : "s"}`);
