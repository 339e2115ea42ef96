"""Sequences that somebody has cut already: between two elements stands a tab, or a blank where there is no tab."""

BETWEEN = "\t"


def elements(text: str) -> list[str]:
    """The words, or the tags, of a text."""
    return [word for word in (text.split(BETWEEN) if BETWEEN in text else text.split()) if word]
