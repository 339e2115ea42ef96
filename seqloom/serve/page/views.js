// The views by the question that each answers: the most useful first. The first of a run that fits is shown.

export const QUESTIONS = [
  ["What did it go by?", {attention: "Attention", heads: "Every attention head", attribution: "What drove the answer",
    faithfulness: "Is that attribution true?", order: "Does order matter?", field: "Receptive field"}],
  ["What does it expect?", {forecast: "Forecast", next: "What could come next", beam: "The beam search"}],
  ["What does it keep in mind?", {gates: "Gates", states: "States", units: "Single units", "memory-path": "How long memory lasts",
    probe: "Which layer knows what"}],
  ["Where is it right, where wrong?", {confusion: "Which classes it confuses", calibration: "Is it as sure as it is right?",
    lengths: "Short and long examples"}],
  ["How did training go?", {curves: "Training curves", schedule: "Learning rate", flow: "Gradients over training", updates: "Updates over training",
    "gradient-history": "Gradient flow over training", "spectrum-history": "Singular values over training"}],
];

// For those who build models.
export const FURTHER = [
  ["What is it made of?", {model: "The network, drawn", cost: "Time and memory"}],
  ["What is alike to it?", {embedding: "Map of the embedding", neighbors: "Nearest symbols", orthogonality: "Angles of vectors", positions: "Positions"}],
  ["Can it learn from far away?", {gradients: "Gradient flow", jacobians: "Vanishing or exploding?", scalar: "One unit, in theory",
    spectrum: "Singular values", "query-key-value": "Queries, keys, values", norms: "Normalization"}],
];

export const TITLES = Object.assign({}, ...[...QUESTIONS, ...FURTHER].map(([, titles]) => titles));
