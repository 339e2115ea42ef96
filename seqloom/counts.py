"""Numbers of things in sentences: 1 row, 2,500 rows. Knows nothing of what is counted."""

IRREGULAR = {"series": "series"}


def format_count(number: int, noun: str) -> str:
    """A number with its noun, which is given in the singular; only its last word is changed."""
    return f"{number:,} {noun if number == 1 else make_plural(noun)}"


def make_plural(noun: str) -> str:
    before, _, last = noun.rpartition(" ")
    if last in IRREGULAR:
        plural = IRREGULAR[last]
    elif last.endswith("y") and last[-2:-1] not in "aeiou":
        plural = f"{last[:-1]}ies"
    else:
        plural = last + ("es" if last.endswith(("s", "x", "ch", "sh")) else "s")
    return f"{before} {plural}" if before else plural
