"""Numbers of things in sentences."""

import pytest

from seqloom.counts import format_count


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (1, "row", "1 row"),
        (0, "row", "0 rows"),
        (2500, "training example", "2,500 training examples"),
        (2, "class", "2 classes"),
        (1, "entry", "1 entry"),
        (3, "entry", "3 entries"),
        (2, "day", "2 days"),
        (2, "series", "2 series"),
        (2, "process", "2 processes"),
    ],
)
def test_one_is_singular_and_all_else_plural(number: int, noun: str, said: str) -> None:
    assert format_count(number, noun) == said
