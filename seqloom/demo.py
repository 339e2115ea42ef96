"""The main job, live: train the date reader, score it, ask it, look inside. `make demo` runs this."""

from collections import defaultdict
from pathlib import Path

from .cli.terminal import follow, notes, show_scores, show_table
from .config.recipe import Recipe
from .data.samples.dates import WrittenDate, dates_with_locales
from .errors import SeqloomError
from .fields import Prediction
from .look.charts.base import save
from .runs.folder import find_free_folder
from .runs.run import Run, load, train

HARD = 3  # languages
SHOWN = 10  # predictions


def main() -> None:
    folder = find_free_folder(Path("runs"), "demo")
    notes.print(f"Training a date reader (a GRU with additive attention) into {folder}")
    end = follow(train(Recipe.read("seq2seq", "train.keep_checkpoints=20"), folder), as_json=False)
    if end is not None:
        show_scores([{"run": str(folder)} | end.final])
    run = load(folder)
    examples = dates_with_locales()["test"]
    answers = [best for best, *_ in run.predict_many([example.source for example in examples], beam=1)]
    shown = choose_examples(examples, answers)
    show_table(
        ["language", "as written there", "answer", ""],
        [[e.language, e.source, a.output, "✓" if a.output == e.target else f"✗ {e.target}"] for e, a in shown],
        f"Ten unseen dates; the last {HARD} are in the languages it finds hardest",
    )
    pictures = draw(run, shown[0][0].source)
    print("\nWhere it looked while it read the first of them:", *pictures, sep="\n  ")
    print(
        "\nWhat to type next:",
        f'.venv/bin/seqloom predict {folder} "3 mai 2024" --beam 3',
        ".venv/bin/seqloom train seq2seq model.kind=transformer --into runs/transformer",
        ".venv/bin/seqloom train seq2seq data.train=YOUR.csv data.source=COLUMN data.target=COLUMN",
        ".venv/bin/seqloom config seq2seq",
        sep="\n  ",
    )
    print(
        "\nTo try it in a browser, and look inside, start its page and open the address that this prints:",
        f".venv/bin/seqloom serve {folder.parent}",
        sep="\n  ",
    )


Answered = tuple[WrittenDate, Prediction]


def choose_examples(examples: list[WrittenDate], answers: list[Prediction]) -> list[Answered]:
    """Examples of several languages, then one of each that the model finds hardest: its worst."""
    by_language: dict[str, list[Answered]] = defaultdict(list)
    for pair in zip(examples, answers, strict=True):
        by_language[pair[0].language].append(pair)
    hardest = sorted(by_language, key=lambda name: rate_ease(by_language[name]))[:HARD]
    hard = [min(by_language[name], key=lambda pair: rate_ease([pair])) for name in hardest]
    easy = [pairs[0] for name, pairs in by_language.items() if name not in hardest]
    step = max(1, len(easy) // (SHOWN - HARD))
    return [*easy[::step][: SHOWN - HARD], *hard]


def rate_ease(pairs: list[Answered]) -> tuple[float, float]:
    """How many are right and, among equals, how sure the model is of them."""
    right = [answer.output == example.target for example, answer in pairs]
    return sum(right) / len(right), min(answer.score for _, answer in pairs)


def draw(run: Run, text: str) -> list[Path]:
    chart = run.look(text).attention()
    return [save(chart, run.folder / f"attention{ending}") for ending in (".html", ".png")]


if __name__ == "__main__":
    try:
        main()
    except SeqloomError as error:
        raise SystemExit(f"error: {error}") from None
