"""How the program beside an exported model reads: `encode(example)` is the elements of an input."""

import re
from collections.abc import Mapping

from ..errors import RunError

LOWER = '    text = text.lower() if SIDE["lowercase"] else text\n'

CHARACTERS = f"""
NUMBERS = {{symbol: number for number, symbol in enumerate(SIDE["symbols"])}}


def encode(text):
{LOWER}    return [NUMBERS.get(letter, 1) for letter in text]
"""

WORDS = f"""
NUMBERS = {{symbol: number for number, symbol in enumerate(SIDE["symbols"]) if number not in (0, 2, 3)}}


def encode(text):
{LOWER}    tokens = []
    for unit in re.findall(r"\\n|\\S+", text) if SIDE.get("breaks") else text.split():
        whole = SIDE["kind"] == "spaced" or unit == "\\n"
        first, *others = [unit] if whole else re.findall(r"\\w+|[^\\w\\s]", unit)
        tokens += [first, *("\\uffed" + token for token in others)]  # no blank stands before these
    return [NUMBERS.get(token, 1) for token in tokens]
"""

NGRAMS = f"""
NUMBERS = {{symbol: number for number, symbol in enumerate(SIDE["symbols"]) if number not in (0, 2, 3)}}


def encode(text):
{LOWER}    words = re.findall(r"\\w+|[^\\w\\s]", text)
    tokens = words[:1]
    for first, second in zip(words, words[1:]):
        tokens += [second, first + " " + second]
    return list(dict.fromkeys(NUMBERS.get(token, 1) for token in tokens if token in NUMBERS or " " not in token))
"""

SUBWORDS = f"""
PIECES = Tokenizer.from_file(str(HERE / "SIDE.tokenizer.json"))


def encode(text):
{LOWER}    size = SIDE["longest"]
    units = re.findall(r"\\s*\\S+|\\s+\\Z", text.encode("utf-8", "replace").decode("utf-8"))
    parts = [unit[start : start + size] for unit in units for start in range(0, len(unit), size)]
    return [number + 4 for part in parts for number in PIECES.encode(part).ids]
"""

# Words by number; of one that is not known, the number of the longest ending that is.
FIND = """
NUMBERS = {symbol: number for number, symbol in enumerate(WORDS["symbols"])}


def find(word):
    if word in NUMBERS or not WORDS.get("endings"):
        return NUMBERS.get(word, 1)
    shape = "A" if word[0].isupper() else "a" if any(map(str.isalpha, word)) else "."
    shape, letters = "0" if any(map(str.isdecimal, word)) else shape, word.lower()
    longest = min(WORDS["longest"], len(letters))
    names = [f"{shape}…{letters[len(letters) - count:]}" for count in range(longest, -1, -1)]
    return next((NUMBERS[name] for name in names if name in NUMBERS), 1)
"""

LISTED = (
    """
WORDS = SIDE
"""
    + FIND
    + """


def elements(text):
    return [word for word in (text.split("\\t") if "\\t" in text else text.split()) if word]


def encode(text):
    return [find(word) for word in elements(text.lower() if SIDE["lowercase"] else text)]
"""
)

SPELLED = (
    """
WORDS = SIDE["words"]
"""
    + FIND
    + """
LETTERS = {symbol: number for number, symbol in enumerate(SIDE["letters"]["symbols"])}


def elements(text):
    return [word for word in (text.split("\\t") if "\\t" in text else text.split()) if word]


def encode(text):
    rows, most, half = [], SIDE["longest"], SIDE["longest"] // 2
    known = elements(text.lower() if SIDE["words"]["lowercase"] else text)
    for word, looked_up in zip(elements(text), known):
        cut = word if len(word) <= most else word[: most - half] + word[-half:]
        letters = [LETTERS.get(letter, 1) for letter in cut]
        rows.append([find(looked_up), *letters, *[0] * (most - len(letters))])
    return np.array(rows, np.int64).reshape(-1, 1 + most)
"""
)

NUMBERS = """

def encode(steps):
    values = np.array(steps, np.float32).reshape(len(steps), -1)
    known, mean, spread = ~np.isnan(values), np.float32(SIDE["mean"]), np.float32(SIDE["spread"])
    scaled = (np.where(known, values, mean) - mean) / spread
    if not FIELDS["whole"]:
        return scaled.astype(np.float32)
    rows = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(known, rows, 0), axis=0)
    since = rows - np.concatenate([np.zeros_like(last[:1]), last[:-1]])
    return np.concatenate([scaled, known, since], 1).astype(np.float32)
"""

IMAGE = """

def encode(image):
    pixels = np.array(image, np.uint8).reshape(SIDE["shape"]) / np.float32(255)
    scaled = (pixels - np.float32(SIDE["mean"])) / np.float32(SIDE["spread"])
    return np.moveaxis(scaled, -1, 0).astype(np.float32)
"""

# Samples are read as frames: the power in bands of the mel scale, as logarithms; frames are read as they are.
SOUND = """

def to_frames(samples):
    rate, bins = SIDE["rate"], SIDE["bins"]
    corners = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 1400), SIDE["bands"] + 2) / 2595) - 1)
    low, middle, high, frequency = corners[:-2], corners[1:-1], corners[2:], np.fft.rfftfreq(bins, 1 / rate)[:, None]
    filters = np.minimum((frequency - low) / (middle - low), (high - frequency) / (high - middle)).clip(0)
    window = np.sin(np.pi * np.arange(SIDE["span"]) / SIDE["span"]) ** 2
    steps = max(1, 1 + -(-(len(samples) - len(window)) // SIDE["step"]))
    whole = np.pad(samples, (0, (steps - 1) * SIDE["step"] + len(window) - len(samples)))
    spans = np.lib.stride_tricks.sliding_window_view(whole, len(window))[:: SIDE["step"]]
    power = np.abs(np.fft.rfft(spans * window, bins)) ** 2 / window.sum() ** 2
    return np.log(power @ filters + SIDE["floor"])


def encode(sound):
    frames = np.array(sound, np.float64)
    frames = to_frames(frames) if frames.ndim == 1 else frames
    return ((frames - np.float32(SIDE["mean"])) / np.float32(SIDE["spread"])).astype(np.float32)
"""

READ = {
    "characters": CHARACTERS,
    **dict.fromkeys(("words", "spaced"), WORDS),
    **dict.fromkeys(("bpe", "wordpiece", "unigram"), SUBWORDS),
    "ngrams": NGRAMS,
    "listed": LISTED,
    "spelled": SPELLED,
    "numbers": NUMBERS,
    "image": IMAGE,
    "sound": SOUND,
}

# What a graph reads of a sequence, which is at least one element wide, and of an image.
BATCH = """

def batch(ids):
    ids, length = np.array(ids), len(ids)
    if not length:
        ids = np.zeros((1, *FIELDS["element"]), ids.dtype if ids.ndim > 1 else np.int64)
    return {"inputs": ids[None], "lengths": np.array([length])}
"""

BATCH_OF_IMAGE = """

def batch(image):
    return {"inputs": image[None]}
"""


def find_code(codes: Mapping[str, str], kind: str) -> str:
    """What is written for a kind of field; there is nothing for one of a person's own."""
    if kind not in codes:
        raise RunError(f"no code is known for {kind}, a field of your own, so this run cannot be exported")
    return codes[kind]


def write_reading(kind: str, side: str) -> str:
    """How a side of this kind is read."""
    code = find_code(READ, kind).replace("SIDE.tokenizer.json", f"{side.lower()}.tokenizer.json")
    return re.sub(r"\bSIDE\b", side, code)
