"""Small data sets in every format that is read, and what chance makes of them, byte by byte or piece by piece."""

import gzip
import io
import json
import random
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqloom.config.recipe import Recipe

ROWS = 24
LETTERS = "abcde"
PIECES = re.compile(rb"[\w.+-]+")
NASTY = (
    *(b"", b"nan", b"NaN", b"inf", b"-inf", b"1e300", b"3e38", b"1e-320", b"0", b"-1", b"1_000", b"9" * 25, b"1e5000"),
    *(b"0" * 5000 + b"1", b"null", b"true", b"?", b"~", b"~nobody/x", b"x" * 300, b"../x", b"/", b"\0", b"\\ud800"),
    *(b"\\u0000", b'"', b"'", b"\t", b",", b"\r", b"\n", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc3\xa9"),
    *(b"#", b"@data", b":", b"[", b"]", b"{", b"}", b"-", b"|", b"<", b"\x1f\x8b", b"2024-13-45", b"0000-00-00"),
    *(b"99999-01-01", b"1e10", b"\xd9\xa3", b"\xc2\xb2", b"infinity", b"0x10", b"\xf0\x9d\x94\x98"),
)
NUMBERS = re.compile(rb"-?\d+(\.\d+)?")
HUGE = (
    *(b"nan", b"inf", b"-inf", b"1e300", b"-1e300", b"1.7e308", b"3e38", b"1e39", b"1e20", b"-1e25", b"1e-320"),
    *(b"1e-40", b"9" * 25, b"-" + b"9" * 400, b"1e155", b"1e160", b"16777217", b"-0", b"1,5", b"2147483648"),
)
LENGTHS = (*(b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\xff\xff"), b"\x7f\x80\0\0", b"\x7f\xc0\0\0")


class Kind(NamedTuple):
    """A way of reading: the recipe for files in this folder, and what they hold."""

    settings: tuple[str, ...]
    files: dict[str, bytes]
    named: int = 1  # how many of them, from the first on, data.train names


def words(number: int, length: int = 4) -> str:
    chance = random.Random(number)
    return "".join(chance.choice(LETTERS) for _ in range(length))


def lines(row: Callable[[int], object], rows: int = ROWS) -> bytes:
    return "".join(f"{row(number)}\n" for number in range(rows)).encode()


def table(between: str, head: str, row: Callable[[int], list[object]], rows: int = ROWS) -> bytes:
    columns = head.split(",")
    return (between.join(columns) + "\n").encode() + lines(lambda n: between.join(map(str, row(n))), rows)


def objects(target: Callable[[int], object]) -> bytes:
    return lines(lambda n: json.dumps({"source": words(n), "target": target(n)}))


def pair(number: int) -> list[object]:
    return [words(number), words(number)[::-1]]


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def parquet(row: Callable[[int], list[object]]) -> bytes:
    import pyarrow
    from pyarrow.parquet import write_table

    file, columns = io.BytesIO(), zip(*map(row, range(ROWS)), strict=True)
    write_table(pyarrow.table(dict(zip(("source", "target"), columns, strict=True))), file)
    return file.getvalue()


def png(number: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def tune(number: int) -> str:
    bars = " | ".join(" ".join(random.Random(number).choices("CDEFGABc", k=4)) for _ in range(3))
    return f"X:{number + 1}\nT:Tune {number}\nM:4/4\nL:1/4\nK:C\n{bars} |]\n"


def rows_of_texts() -> dict[str, Kind]:
    packed = gzip.compress(table(",", "source,target", pair), mtime=0)
    rated = ("task=classify", "data.target_type=number", "model.kind=gru")
    several = ("task=classify", "data.target_type=labels", "model.kind=gru")
    vectors = ("task=classify", "data.source_tokenizer=words", "model.kind=gru", "model.embedding=3")
    return {
        "csv": Kind((), {"train.csv": table(",", "source,target", pair)}),
        "csv, quoted": Kind((), {"train.csv": table(",", "source,target", lambda n: [f'"{w}"' for w in pair(n)])}),
        "csv, packed": Kind((), {"train.csv.gz": packed}),
        "csv, skipping": Kind(("data.on_bad_row=skip",), {"train.csv": table(",", "source,target", pair)}),
        "csv, rated": Kind(rated, {"train.csv": table(",", "source,target", lambda n: [words(n), n / 4])}),
        "csv, labels": Kind(
            several,
            {"train.csv": table(",", "source,target", lambda n: [words(n), f'"{",".join("xyz"[: n % 4])}-"'])},
        ),
        "tsv": Kind((), {"train.tsv": table("\t", "source,target", pair)}),
        "jsonl": Kind((), {"train.jsonl": lines(lambda n: json.dumps({"source": words(n), "target": words(n + 1)}))}),
        "jsonl, rated": Kind(
            rated, {"train.jsonl": lines(lambda n: json.dumps({"source": words(n), "target": n / 4}))}
        ),
        "txt": Kind((), {"train.txt": lines(lambda n: "\t".join(map(str, pair(n))))}),
        "lines": Kind((), {"a.txt": lines(words), "b.txt": lines(lambda n: words(n)[::-1])}, named=2),
        "parquet": Kind((), {"train.parquet": parquet(pair)}),
        "parquet, rated": Kind(rated, {"train.parquet": parquet(lambda n: [words(n), n / 4])}),
        "vectors": Kind(
            (*vectors, "data.vectors=FOLDER/vectors.txt"),
            {
                "train.csv": table(",", "source,target", lambda n: [words(n), "xy"[n % 2]]),
                "vectors.txt": lines(lambda n: f"{words(n)} 0.5 {n} 1"),
            },
        ),
    }


def tables_of_numbers() -> dict[str, Kind]:
    numbers = ("task=classify", "data.source_type=numbers", "data.source=a,b", "model.kind=gru")
    gaps = (*numbers[:3], "model.kind=gru-d", "data.series=s")
    forecast = ("task=forecast", "data.context=6", "data.horizon=2", "model.kind=gru", "data.time=time")
    walk = np.random.default_rng(0).normal(size=(60, 2)).cumsum(0).round(3).tolist()
    header = "@timeStamps false\n@missing true\n@univariate false\n@dimensions 2\n@equalLength true\n@seriesLength 4\n"
    cases = lines(lambda n: f"1,2.5,{n},4:0,1,?,{n}:{'ab'[n % 2]}")
    labeled = {
        "x-ubyte": idx(np.random.default_rng(1).integers(0, 256, (ROWS, 4, 4), dtype=np.uint8)),
        "y-ubyte": idx(np.arange(ROWS, dtype=np.uint8) % 3),
    }

    def sequences(target: Callable[[int], str], second: Callable[[int], object]) -> dict[str, bytes]:
        return {"train.csv": table(",", "s,a,b,target", lambda n: [n // 2, n, second(n), target(n)])}

    return {
        "csv, numbers": Kind(numbers, {"train.csv": table(",", "a,b,target", lambda n: [n, n / 3, "xy"[n % 2]])}),
        "csv, sequences": Kind((*numbers, "data.series=s"), sequences(lambda n: "xy"[n // 2 % 2], lambda n: n / 3)),
        "csv, gaps": Kind(gaps, sequences(lambda n: "xy"[n // 2 % 2], lambda n: "" if n % 5 else n)),
        "csv, frames": Kind(
            ("task=tag", *numbers[1:], "data.series=s"), sequences(lambda n: "xy"[n % 2], lambda n: n / 3)
        ),
        "csv, forecast": Kind(
            forecast,
            {"train.csv": table(",", "time,a,b", lambda n: [f"2024-{1 + n // 28:02}-{1 + n % 28:02}", *walk[n]], 60)},
        ),
        "csv, long forecast": Kind(
            (*forecast, "data.series=who"),
            {"train.csv": table(",", "who,time,a,b", lambda n: ["xy"[n // 30], n % 30, *walk[n]], 60)},
        ),
        "ts": Kind(
            (*numbers[:2], "model.kind=gru"), {"train.ts": f"{header}@classLabel true a b\n@data\n".encode() + cases}
        ),
        "idx": Kind(("task=classify", "data.source_type=image", "model.kind=gru"), labeled, named=2),
        "idx, rows": Kind((*numbers[:2], "model.kind=gru"), labeled, named=2),
        "idx, drawn": Kind(("task=draw", "data.square=2", "model.kind=gru"), labeled, named=2),
    }


def other_formats() -> dict[str, Kind]:
    tagging, writing = ("task=tag", "model.kind=gru"), ("task=language", "train.bptt_window=8")
    looking = ("task=caption", "model.kind=gru")
    images = {f"{number}.png": png(number) for number in range(6)}
    chorale = [[[60 + (n + step) % 5, 64 + n % 7] for step in range(6)] for n in range(8)]
    parts = {"train": chorale, "valid": chorale[:2], "test": chorale[2:4]}

    def word(number: int) -> str:
        return f"{number % 3 + 1}\t{words(number)}\t_\t{'NV'[number % 2]}\t_\t_\t0\t_\t_\t_" + "\n" * (number % 3 == 2)

    return {
        "text": Kind(writing, {"train.txt": lines(words, 60)}),
        "fasta": Kind(writing, {"train.fasta": lines(lambda n: f">{n}\n{words(n, 20)}")}),
        "conll": Kind(
            tagging, {"train.conll": lines(lambda n: f"{words(n)} {words(n)[0].upper()}" + "\n" * (n % 3 == 2), 60)}
        ),
        "conllu": Kind(tagging, {"train.conllu": lines(word, 60)}),
        "abc": Kind(("task=music", "train.bptt_window=16"), {"train.abc": lines(tune)}),
        "chorales": Kind(
            ("task=music", "data.format=json", "train.bptt_window=8"), {"train.json": json.dumps(parts).encode()}
        ),
        "images": Kind(
            (*looking, "data.format=images", "data.image_size=8"),
            {"train.tsv": table("\t", "image,caption", lambda n: [f"{n % 6}.png", words(n)]), **images},
        ),
        "sheets": Kind(
            (*looking, "data.format=sheets", "data.image_size=4"),
            {
                "index.tsv": table("\t", "sheet,row,col,image", lambda n: ["0.png", n % 2, n % 2, f"{n}.png"]),
                "train.tsv": table("\t", "image,caption", lambda n: [f"{n}.png", words(n)]),
                "0.png": images["0.png"],
            },
            named=2,
        ),
    }


def kinds() -> dict[str, Kind]:
    return rows_of_texts() | tables_of_numbers() | other_formats()


# --- chance ---------------------------------------------------------------------------------------------------


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The same with one to three things changed."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        content = chance.choice(WAYS)(content, chance)
    return content


def some_bytes(content: bytes, chance: random.Random) -> bytes:
    """A stretch goes, comes twice, or becomes noise."""
    start = chance.randrange(len(content) + 1)
    stop = min(len(content), start + chance.choice((0, 1, 1, 2, 4, 16)))
    other = chance.choice(
        (b"", 2 * content[start:stop], chance.randbytes(stop - start + chance.randrange(2)), *LENGTHS)
    )
    return content[:start] + other + content[stop:]


def one_bit(content: bytes, chance: random.Random) -> bytes:
    if not content:
        return content
    place = chance.randrange(min(len(content), chance.choice((16, 10**6))))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def the_end(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def one_piece(content: bytes, chance: random.Random) -> bytes:
    """A number or word becomes something nasty, in one place or in a whole stretch."""
    found = list(PIECES.finditer(content))
    if not found:
        return content
    nasty, first = chance.choice(NASTY), chance.randrange(len(found))
    step = chance.choice((0, 0, 2, 3))  # of a table with so many columns, one column
    for match in reversed(found[first::step] if step else found[first : first + 1]):
        content = content[: match.start()] + nasty + content[match.end() :]
    return content


def one_number(content: bytes, chance: random.Random) -> bytes:
    """One of the numbers, or many of them, become such as no table should have."""
    found = list(NUMBERS.finditer(content))
    if not found:
        return content
    huge, first = chance.choice(HUGE), chance.randrange(len(found))
    step = chance.choice((0, 0, 1, 2, 3))
    for match in reversed(found[first::step] if step else found[first : first + 1]):
        content = content[: match.start()] + huge + content[match.end() :]
    return content


def the_lines(content: bytes, chance: random.Random) -> bytes:
    """A line goes, comes twice or elsewhere, or all of them are shuffled."""
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[place]
        case 1:
            lines.insert(chance.randrange(len(lines)), lines[place])
        case 2:
            chance.shuffle(lines)
        case 3:
            lines[place] = chance.choice(NASTY)
        case 4:
            del lines[chance.randrange(1, 4) :]
    return b"\n".join(lines)


WAYS = (some_bytes, one_bit, the_end, one_piece, one_piece, one_number, one_number, the_lines)


def write(kind: Kind, folder: Path, seed: int | None) -> Recipe:
    """The files in a folder, one of them mutated if there is a seed; and the recipe that reads them."""
    chance = random.Random(seed)
    spoilt = chance.choice(list(kind.files)[:3])
    for name, content in kind.files.items():
        packed = name.endswith(".gz") and chance.random() < 0.7  # the rest of the time, the packing itself
        if seed is not None and name == spoilt:
            content = gzip.compress(mutated(gzip.decompress(content), chance)) if packed else mutated(content, chance)
        (folder / name).write_bytes(content)
    files = ",".join(str(folder / name) for name in list(kind.files)[: kind.named])
    settings = [setting.replace("FOLDER", str(folder)) for setting in kind.settings]
    tiny = (
        "model.size=4",
        "train.steps=1",
        "train.batch_tokens=64",
        "data.validation_share=0.2",
        "data.test_share=0.2",
    )
    return Recipe().override(*tiny, *settings, f"data.train={files}")
