"""The program that lies beside an exported model: from what a person types to what the run would answer.

It is put together from a way to read and a way to answer. What these know of the run is in fields.json.
"""

HEADER = '''"""{title}

    python predict.py {example}

or from Python: from predict import predict. It needs {needs}, and answers as `seqloom predict --beam 1`.
"""

import json
import re
import sys
from pathlib import Path

{imports}

HERE = Path(__file__).resolve().parent
FIELDS = json.loads((HERE / "fields.json").read_text("utf-8"))
SOURCE, TARGET = FIELDS.get("source"), FIELDS.get("target")
'''

# --- runtimes: `graph(name)` is a function from arrays by name to arrays by name --------------------------------------

ONNXRUNTIME = """

def graph(name):
    session = onnxruntime.InferenceSession(str(HERE / f"{name}.onnx"), providers=["CPUExecutionProvider"])
    outputs = [one.name for one in session.get_outputs()]
    names = {one.name for one in session.get_inputs()}
    return lambda **arrays: dict(zip(outputs, session.run(None, {k: v for k, v in arrays.items() if k in names})))
"""

TORCH = """
import importlib.util

SPEC = importlib.util.spec_from_file_location("model", HERE / "model.py")
MODEL_CODE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MODEL_CODE)
NET = MODEL_CODE.load()
METHODS = {"model": NET.answer} if hasattr(NET, "answer") else {"decoder": NET.step}
METHODS |= {name: getattr(NET, of) for name, of in (("encoder", "encode"), ("start", "start")) if hasattr(NET, of)}


def graph(name):
    def run(**arrays):
        with torch.no_grad():
            outputs = METHODS[name](**{k.replace(".", "_"): torch.from_numpy(v) for k, v in arrays.items()})
        return {k: v.numpy() for k, v in outputs.items()}

    return run
"""

# --- answering: `predict(example)` is what a person reads ----------------------------------------------------------

LABEL = '''

def predict(example):
    """The likeliest label."""
    return TARGET["names"][int(MODEL(**batch(CUT))["logits"][0].argmax())]
'''

LABELS = '''

def predict(example):
    """All labels that are likelier than not."""
    likely = MODEL(**batch(CUT))["logits"][0] > 0
    return ", ".join(sorted(name for name, there in zip(TARGET["names"], likely) if there)) or "-"
'''

NUMBER = '''

def predict(example):
    """A number."""
    value = float(MODEL(**batch(CUT))["mean"][0, 0]) * TARGET["spread"] + TARGET["mean"]
    return f"{value:.4g}"
'''

BEST_TAGS = """

def best(scores):
    return scores.argmax(-1)
"""

BEST_PATH = '''

def best(scores):
    """The best path (Viterbi): a score for each tag, for each pair of neighbors, and for either end."""
    pairs, first, last = (np.float32(FIELDS["crf"][name]) for name in ("pairs", "first", "last"))
    worth = [scores[0] + first]
    for score in scores[1:]:
        worth.append((worth[-1][:, None] + (pairs + score)).max(0))
    path = [int((worth[-1] + last).argmax())]
    for before in worth[-2::-1]:
        path.insert(0, int((before + pairs[:, path[0]]).argmax()))
    return path
'''

TAGS = '''

def predict(example):
    """A tag for each element; what is long is read in pieces."""
    ids, most, tags = encode(example), FIELDS["max_length"], []
    for start in range(0, len(ids), most):
        piece = ids[start : start + most]
        scores = MODEL(**batch(piece))["logits"][0, : len(piece)]
        tags += [TARGET["names"][tag] for tag in best(scores)]
    words = elements(example) if isinstance(example, str) else []
    return " ".join(f"{word}/{tag}" for word, tag in zip(words, tags)) if words else " ".join(tags)
'''

STEP = '''

def step(elements, known):
    """What comes after each of these elements, and what is known then."""
    outputs = DECODER(inputs=elements, **known)
    after = {k.replace("next", "state"): v for k, v in outputs.items() if k.startswith("next.")}
    return outputs["logits"], known | after
'''

WRITE = '''

def write(known):
    """The likeliest token each time, up to the end."""
    last, tokens = 2, []
    for _ in range(FIELDS["max_length"]):
        logits, known = step(np.array([[last]]), known)
        logits[..., FIELDS["banned"]] = -np.inf
        last = int(logits[0, -1].argmax())
        if last == FIELDS["end"]:
            break
        tokens.append(last)
    return tokens
'''

TEXT = """

def predict(example):
    return decode(write(ENCODER(**batch(CUT))))
"""

TEXT_WITH_TAG = '''

def predict(example, tag=None):
    """The text, in the language or style that the tag names."""
    number = len(SOURCE["symbols"]) + FIELDS["tag"]["names"].index(tag)
    return decode(write(ENCODER(**batch([number, *CUT]))))
'''

DECODE_CHARACTERS = """

def decode(tokens):
    return "".join(TARGET["symbols"][token] for token in tokens if token not in (0, 2, 3))
"""

DECODE_WORDS = """

def decode(tokens):
    text, blank = [], ""
    for token in (TARGET["symbols"][token] for token in tokens if token not in (0, 2, 3)):
        joined = TARGET["kind"] == "words" and len(token) > 1 and token[0] == "\\uffed"
        text.append(token[1:] if joined else token if token == "\\n" else blank + token)
        blank = "" if token == "\\n" else " "
    return "".join(text)
"""

DECODE_SUBWORDS = """

def decode(tokens):
    return b"".join(bytes.fromhex(TARGET["bytes"][token]) for token in tokens).decode("utf-8", "replace")
"""

DECODE = {
    "characters": DECODE_CHARACTERS,
    **dict.fromkeys(("words", "spaced"), DECODE_WORDS),
    **dict.fromkeys(("bpe", "wordpiece", "unigram"), DECODE_SUBWORDS),
}

DRAWING = '''

def predict(example):
    """A drawing in five shades."""
    squares = np.array([list(bytes.fromhex(square)) for square in TARGET["squares"]], np.uint8)
    (height, width, _), side = TARGET["size"], TARGET["side"]
    down, across = -(-height // side), -(-width // side)
    flat = squares[np.array(write(ENCODER(**batch(CUT)))) - 4]
    image = flat.reshape(down, across, side, side, -1).swapaxes(1, 2).reshape(down * side, across * side, -1)
    bright = image[:height, :width].mean(-1) / 256 * 5
    return "\\n".join("".join(2 * " \\u2591\\u2592\\u2593\\u2588"[int(shade)] for shade in row) for row in bright)
'''

NEXT = '''

def predict(example):
    """The likeliest token after a text."""
    ids = encode(example)
    ids = [2, *ids] if FIELDS["documents"] else ids or [FIELDS["begin"]]
    if FIELDS["window"] and len(ids) >= FIELDS["window"]:  # what knows no more reads half of it
        ids = ids[-max(1, FIELDS["window"] // 2) :]
    logits, _ = step(np.array([ids]), START(rows=np.array([1])))
    logits[..., 1] = -np.inf  # an unknown token is no answer
    return TARGET["names"][int(logits[0, -1].argmax())]
'''

FRAMES = '''

def predict(example):
    """The likeliest frame after some: a line a frame, its pitches or a dash."""
    lines, lowest = example.strip().splitlines(), FIELDS["lowest"]
    frames = np.zeros((1 + len(lines), TARGET["keys"]), np.float32)
    frames[0] = 1
    for frame, line in zip(frames[1:], lines):
        frame[[int(pitch) - lowest for pitch in line.replace("-", " ").split()]] = 1
    if FIELDS["window"] and len(frames) >= FIELDS["window"]:
        frames = frames[-max(1, FIELDS["window"] // 2) :]
    logits, _ = step(frames[None], START(rows=np.array([1])))
    return " ".join(str(lowest + key) for key in np.flatnonzero(logits[0, -1] > 0)) or "-"
'''

FORECAST = '''

def fill(values, before):
    """Each gap gets the last value before it."""
    latest = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))[:, None]), 0)
    return np.where(latest < 0, before, np.take_along_axis(values, np.maximum(latest, 0), 0))


def calendar(times):
    """Sines and cosines of the hour, the weekday and the day of the year, as far as the spacing shows them."""
    if not FIELDS["calendar"]:
        return np.zeros((FIELDS["context"], 0))
    moments, day, features = np.array(times, "datetime64[ms]")[-FIELDS["context"] :], 86_400_000, []
    spacing, years = np.median(np.diff(moments).astype(np.int64)), moments.astype("datetime64[Y]")
    begin, end = (one.astype("datetime64[ms]") for one in (years, years + 1))
    week = (moments - np.datetime64("1970-01-05", "ms")).astype(np.int64)
    shares = week % day / day, week % (7 * day) / (7 * day), (moments - begin) / (end - begin)
    for share, limit in zip(shares, (1, 7, 365)):
        if spacing < limit * day:
            features += [np.sin(2 * np.pi * share), np.cos(2 * np.pi * share)]
    return np.stack(features, 1)


def predict(rows, times=None):
    """What follows rows of all variables and inputs: for each variable its quantiles by level, or its mean."""
    context, count, span, relative = (FIELDS[name] for name in ("context", "variables", "span", "relative"))
    values = np.array(rows, np.float64).reshape(len(rows), -1)[-context:]
    values = ((values - FIELDS["mean"]) / FIELDS["spread"]).astype(np.float32)
    known = ~np.isnan(values)
    level, spread = np.zeros_like(values[:1]), np.ones_like(values[:1])
    if relative == "last":
        level = fill(values, 0)[-1:].astype(np.float32)
    if relative == "mean":
        seen = np.maximum(known.sum(0, keepdims=True), 1)
        level = (np.where(known, values, 0).sum(0, keepdims=True) / seen).astype(np.float32)
        spread = np.sqrt((np.where(known, values - level, 0) ** 2).sum(0, keepdims=True) / seen + 1e-4)
    values, when = (values - level) / spread.astype(np.float32), calendar(times)
    steps = np.arange(1, len(values) + 1)[:, None]
    ages = np.log1p(steps - np.maximum.accumulate(np.where(known, steps, 0), 0))
    parts, inputs = [fill(values, 0), known, ages], []
    for own in [[one] for one in range(count)] if FIELDS["alone"] else [list(range(count))]:
        columns = own + list(range(count, values.shape[1]))
        read = [part[:, columns] for part in (parts if FIELDS["gaps"] or FIELDS["decays"] else parts[:1])]
        if FIELDS["decays"]:
            sure = (when, np.ones_like(when), np.zeros_like(when))
            read = [one for pair in zip(read, sure) for one in pair]
        else:
            read.append(when)
        inputs.append(np.concatenate(read, 1).reshape(len(values) // span, -1))
    inputs = np.array(inputs, np.float32)
    [forecast] = MODEL(inputs=inputs, lengths=np.full(len(inputs), inputs.shape[1])).values()
    forecast = forecast if FIELDS["levels"] else forecast[..., None]
    forecast = forecast.swapaxes(0, 2)[0] if FIELDS["alone"] else forecast[0]  # (horizon, variables, levels)
    forecast = forecast.astype(np.float64) * spread[0, :count, None] + level[0, :count, None]
    forecast = forecast * np.array(FIELDS["spread"])[:count, None] + np.array(FIELDS["mean"])[:count, None]
    levels = [f"{level:g}" for level in FIELDS["levels"]] or ["mean"]
    return {n: dict(zip(levels, forecast[:, c].T.tolist())) for c, n in enumerate(FIELDS["names"])}
'''

MAIN_TEXT = """

if __name__ == "__main__":
    for example in sys.argv[1:] or (line.rstrip("\\r\\n") for line in sys.stdin):
        print(predict(example))
"""

MAIN_TAGGED = """

if __name__ == "__main__":
    tag, *inputs = sys.argv[1:]
    for example in inputs or (line.rstrip("\\r\\n") for line in sys.stdin):
        print(predict(example, tag))
"""

MAIN_JSON = """

if __name__ == "__main__":
    for example in sys.argv[1:] or sys.stdin:
        answer = predict(json.loads(example))
        print(answer if isinstance(answer, str) else json.dumps(answer))
"""


def graphs(**files: str) -> str:
    """The lines that open graphs, each under its name."""
    return "\n\n" + "".join(f'{name} = graph("{file}")\n' for name, file in files.items())
