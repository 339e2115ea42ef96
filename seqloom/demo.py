"""The main job, live: train the date reader, score it, ask it, look inside. `make demo` runs this."""

from collections import defaultdict
from pathlib import Path

from .data.samples import WrittenDate, dates_with_locales
from .errors import SeqloomError
from .look.charts import save
from .recipe import Recipe
from .runs import Run, load, next_folder, train
from .terminal import follow, notes, show_scores, show_table

HARD = 3  # languages
SHOWN = 10  # predictions


def main() -> None:
    folder = next_folder(Path("runs"), "demo")
    notes.print(f"Training a date reader (a GRU with additive attention) into {folder}")
    follow(train(Recipe.read("transduce"), folder, tell=notes.print), folder, as_json=False)
    run = load(folder)
    show_scores([run.scores])
    examples = dates_with_locales()["test"]
    answers = [best.output for best, *_ in run.predict_many([example.source for example in examples], width=1)]
    shown = chosen(examples, answers)
    show_table(
        ["language", "as written there", "answer", ""],
        [[e.language, e.source, answer, "✓" if answer == e.target else f"✗ {e.target}"] for e, answer in shown],
        f"Ten unseen dates; the last {HARD} are in the languages it finds hardest",
    )
    pictures = draw(run, shown[0][0].source)
    print("\nWhere it looked while it read the first of them:", *pictures, sep="\n  ")
    print(
        "\nWhat to type next:",
        f'.venv/bin/seqloom predict {folder} "3 mai 2024" --width 3',
        ".venv/bin/seqloom train transduce model.kind=transformer --into runs/transformer",
        ".venv/bin/seqloom train transduce data.train=YOUR.csv data.source=COLUMN data.target=COLUMN",
        ".venv/bin/seqloom config transduce",
        sep="\n  ",
    )


def chosen(examples: list[WrittenDate], answers: list[str]) -> list[tuple[WrittenDate, str]]:
    """Examples of several languages, then one of each that the model finds hardest, a mistake if there is one."""
    by_language: dict[str, list[tuple[WrittenDate, str]]] = defaultdict(list)
    for example, answer in zip(examples, answers, strict=True):
        by_language[example.language].append((example, answer))
    hardest = sorted(
        by_language, key=lambda name: sum(e.target == a for e, a in by_language[name]) / len(by_language[name])
    )
    hard = [min(by_language[name], key=lambda pair: pair[0].target == pair[1]) for name in hardest[:HARD]]
    easy = [by_language[name][0] for name in by_language if name not in hardest[:HARD]]
    step = max(1, len(easy) // (SHOWN - HARD))
    return [*easy[::step][: SHOWN - HARD], *hard]


def draw(run: Run, text: str) -> list[Path]:
    chart = run.look(text).attention()
    return [save(chart, run.folder / f"attention{ending}") for ending in (".html", ".png")]


if __name__ == "__main__":
    try:
        main()
    except SeqloomError as error:
        raise SystemExit(f"error: {error}") from None
