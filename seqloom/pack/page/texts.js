// Texts to numbers of tokens and back, as the run does it. In front of all symbols stand <pad>, <unk>, <sos> and <eos>.

const UNKNOWN = 1, SPECIALS = 4, SILENT = new Set([0, 2, 3]), JOINER = "\uffed";
const BLANK = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";  // what Python's \s is
const SPACED = new RegExp(`[^${BLANK}]+`, "gu"), SPACED_OR_BREAK = new RegExp(`\\n|[^${BLANK}]+`, "gu");
const WORD = /[\p{L}\p{N}_]+|[^\p{L}\p{N}_]/gu;
const UNIT = new RegExp(`[${BLANK}]*[^${BLANK}]+|[${BLANK}]+$`, "gu");
const BYTE_LEVEL = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

const numbered = symbols => new Map(symbols.map((symbol, number) => [symbol, number]));
const all = (text, pattern) => text.match(pattern) ?? [];
const lower = (text, side) => side.lowercase ? text.toLowerCase() : text;
export const elements = text => text.includes("\t") ? text.split("\t").filter(word => word) : all(text, SPACED);

// The name of each byte: itself where it is visible Latin-1, else the next letter after Latin-1.
const BYTES = (() => {
  let next = 0x100;
  return Array.from({length: 256}, (_, byte) => byte >= 0x21 && byte < 0x7f || byte >= 0xa1 && byte < 0xad || byte >= 0xae
    ? String.fromCharCode(byte) : String.fromCharCode(next++));
})();

// --- subwords of a word, which is written in names of bytes ---

function bytePairs({vocab, merges}) {
  const rank = new Map(merges.map(([left, right], place) => [`${left} ${right}`, place]));
  return word => {
    const parts = Array.from(word);
    while (parts.length > 1) {
      let best = Infinity, at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const found = rank.get(`${parts[i]} ${parts[i + 1]}`);
        if (found !== undefined && found < best) [best, at] = [found, i];
      }
      if (at < 0) break;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
    return parts.map(part => vocab[part]);
  };
}

function longestFirst({vocab, continuing_subword_prefix: mark}) {
  return word => {
    const found = [];
    for (let begin = 0; begin < word.length;) {
      let end = word.length;
      const piece = () => (begin ? mark : "") + word.slice(begin, end);
      while (end > begin && !Object.hasOwn(vocab, piece())) end--;
      found.push(vocab[piece()]);
      begin = end;
    }
    return found;
  };
}

function likeliest({vocab}) {
  const logs = new Map(vocab.map(([symbol, log], number) => [symbol, [number, log]])), longest = Math.max(...vocab.map(([symbol]) => symbol.length));
  return word => {
    const best = [{score: 0}];
    for (let begin = 0; begin < word.length; begin++) {
      for (let end = begin + 1; end <= Math.min(word.length, begin + longest); end++) {
        const [number, log] = logs.get(word.slice(begin, end)) ?? [];
        const score = best[begin].score + log;
        if (number !== undefined && !(best[end]?.score >= score)) best[end] = {score, number, begin};
      }
    }
    const path = [];
    for (let end = word.length; end > 0; end = best[end].begin) path.unshift(best[end].number);
    return path;
  };
}

const CUTS = {BPE: bytePairs, WordPiece: longestFirst, Unigram: likeliest};

function subwords(side, tokenizer) {
  const cut = CUTS[tokenizer.model.type](tokenizer.model), known = new Map(), encoder = new TextEncoder();
  const word = text => {
    if (!known.has(text)) known.set(text, cut(Array.from(encoder.encode(text), byte => BYTES[byte]).join("")));
    return known.get(text);
  };
  return text => all(lower(text, side).toWellFormed?.() ?? lower(text, side), UNIT).flatMap(unit => {
    const letters = Array.from(unit), pieces = [];
    for (let begin = 0; begin < letters.length; begin += side.longest) pieces.push(letters.slice(begin, begin + side.longest).join(""));
    return pieces.flatMap(piece => all(piece, BYTE_LEVEL)).flatMap(word).map(number => number + SPECIALS);
  });
}

// --- all kinds ---

function characters(side) {
  const numbers = numbered(side.symbols);
  return text => Array.from(lower(text, side), letter => numbers.get(letter) ?? UNKNOWN);
}

function words(side) {
  const numbers = numbered(side.symbols);
  for (const number of SILENT) numbers.delete(side.symbols[number]);
  return text => all(lower(text, side), side.breaks ? SPACED_OR_BREAK : SPACED).flatMap(unit => {
    const [first, ...others] = side.kind === "spaced" || unit === "\n" ? [unit] : all(unit, WORD);
    return [first, ...others.map(token => JOINER + token)];
  }).map(token => numbers.get(token) ?? UNKNOWN);
}

// The number of a word; of one that is not known, that of the longest ending that is.
function finder(side) {
  const numbers = numbered(side.symbols);
  return word => {
    if (numbers.has(word) || !side.endings) return numbers.get(word) ?? UNKNOWN;
    const [first] = word, letters = Array.from(word.toLowerCase());
    const shape = /\p{Nd}/u.test(word) ? "0" : !/\p{L}/u.test(word) ? "." : /\p{Lu}/u.test(first) ? "A" : "a";
    for (let count = Math.min(side.longest, letters.length); count >= 0; count--) {
      const ending = numbers.get(`${shape}…${letters.slice(letters.length - count).join("")}`);
      if (ending !== undefined) return ending;
    }
    return UNKNOWN;
  };
}

function listed(side) {
  const find = finder(side);
  return text => elements(lower(text, side)).map(find);
}

function spelled(side) {
  const find = finder(side.words), letters = numbered(side.letters.symbols), half = Math.floor(side.longest / 2);
  return text => {
    const known = elements(lower(text, side.words));
    return elements(text).map((word, place) => {
      const whole = Array.from(word);
      const cut = whole.length <= side.longest ? whole : [...whole.slice(0, side.longest - half), ...whole.slice(whole.length - half)];
      const row = [find(known[place]), ...cut.map(letter => letters.get(letter) ?? UNKNOWN)];
      return [...row, ...new Array(1 + side.longest - row.length).fill(0)];
    });
  };
}

const ENCODERS = {characters, words, spaced: words, listed, spelled, bpe: subwords, wordpiece: subwords, unigram: subwords};

export const makeEncoder = (side, tokenizer) => ENCODERS[side.kind](side, tokenizer);

export function decode(side, tokens) {
  if (side.bytes) {
    return readBytes(tokens.map(token => side.bytes[token]).join(""));
  }
  const known = tokens.filter(token => !SILENT.has(token)).map(token => side.symbols[token]);
  if (side.kind === "characters") return known.join("");
  let text = "", blank = "";
  for (const token of known) {
    const joined = side.kind === "words" && Array.from(token).length > 1 && token[0] === JOINER;
    text += joined ? token.slice(1) : token === "\n" ? token : blank + token;
    blank = token === "\n" ? "" : " ";
  }
  return text;
}

const readBytes = hex => new TextDecoder("utf-8", {ignoreBOM: true}).decode(
  Uint8Array.from(all(hex, /../g), pair => parseInt(pair, 16)));

// What a person reads of one token.
export function nameOf(side, token) {
  if (side.bytes && token >= SPECIALS) return readBytes(side.bytes[token]);
  const symbol = (side.symbols ?? side.words?.symbols)[token];
  return side.kind === "words" && symbol.length > 1 && symbol[0] === JOINER ? symbol.slice(1) : symbol;
}
