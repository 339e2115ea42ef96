"""Sequences that somebody has cut already: between two elements stands a tab, or a blank where there is no tab."""

from typing import Any

SEPARATOR = "\t"


def join_elements(value: Any) -> Any:
    """A list of words or tags from Python as such a text, which says where each ends; anything else as it is."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one.strip() for one in value):
        return value
    return value if any(SEPARATOR in one for one in value) else "".join(one + SEPARATOR for one in value) or value


def split_elements(text: str) -> list[str]:
    """The words, or the tags, of a text."""
    return [word for word in (text.split(SEPARATOR) if SEPARATOR in text else text.split()) if word]
