"""Whether the short rows of the results still hold: each is trained anew and compared with its stored interval.

`python benchmarks/regress.py` does the rows with a budget of up to three minutes, `python benchmarks/regress.py trec`
one of them. A row takes as many steps as when it was stored, so that a slower or busier machine needs more time and
reaches the same. A score that is worse than the worse end of its interval is a regression: exit code 1.
"""

import json
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from results import DATA, ROOT, ROWS, WORK, ledger, minutes, settings_of

LONGEST = 3  # minutes of the budget of a row that is done here


class Verdict(NamedTuple):
    score: str
    stored: float
    interval: tuple[float, float]
    now: float
    regressed: bool

    def __str__(self) -> str:
        low, high = self.interval
        word = "WORSE" if self.regressed else "holds"
        return f"{word}  {self.score} {self.now:.3f}, stored {self.stored:.3f} ({low:.3f} to {high:.3f})"


def short_rows() -> list[str]:
    """The rows that are stored and quick."""
    return [name for name in ledger() if name in ROWS and minutes(ROWS[name].budget) <= LONGEST]


def compare(row: dict[str, Any], scores: dict[str, Any]) -> list[Verdict]:
    """Every score that the row tells, against its stored interval."""
    verdicts = []
    for name in row["score"].split(","):
        stored, now = row["scores"][name], scores[name]["value"]
        low, high = stored["interval"]
        worse = {"higher": now < low, "lower": now > high, "nearer": not low <= now <= high}[stored["better"]]
        verdicts.append(Verdict(name, stored["value"], (low, high), now, worse))
    return verdicts


def train_again(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The scores of the row, trained from the beginning for as many steps as it had."""
    folder = WORK / "regress" / name
    shutil.rmtree(folder, ignore_errors=True)
    settings = [setting for setting in settings_of(name, str(DATA)) if not setting.startswith("train.time=")]
    steps, seed = f"train.steps={row['steps']}", f"train.seed={row['seed']}"
    train = [sys.executable, "-m", "seqloom", "train", *settings, steps, seed, "--into", str(folder)]
    subprocess.run(train, check=True, cwd=ROOT)
    return json.loads((folder / "scores.json").read_text("utf-8"))["scores"]


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"error: {DATA} is not there; SEQLOOM_DATA names the folder of the data")
    known = short_rows()
    asked = sys.argv[1:] or known
    if unknown := [name for name in asked if name not in known]:
        sys.exit(f"error: {', '.join(unknown)} is not a short row; there are {', '.join(known)}")
    told = {name: compare(ledger()[name], train_again(name, ledger()[name])) for name in asked}
    for name, verdicts in told.items():
        for verdict in verdicts:
            print(f"{name:14} {verdict}")
    if any(verdict.regressed for verdicts in told.values() for verdict in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
