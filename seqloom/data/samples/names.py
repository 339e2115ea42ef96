"""Names of countries and languages, and the language they are in: a sample for classification."""

import random

from seqloom.errors import MissingExtra

# By the name that a person reads. Written in one alphabet, so that the letters alone do not give them away.
LANGUAGES = {
    **{"de": "German", "nl": "Dutch", "sv": "Swedish", "is": "Icelandic", "fr": "French", "es": "Spanish"},
    **{"it": "Italian", "pt": "Portuguese", "ro": "Romanian", "pl": "Polish", "cs": "Czech", "hr": "Croatian"},
    **{"lt": "Lithuanian", "lv": "Latvian", "fi": "Finnish", "et": "Estonian", "hu": "Hungarian", "sq": "Albanian"},
    **{"tr": "Turkish", "id": "Indonesian", "sw": "Swahili", "vi": "Vietnamese", "cy": "Welsh", "eu": "Basque"},
}
SHARES = {"validation": 0.1, "test": 0.1}
SEED = 1492


def names() -> dict[str, list[tuple[str, str]]]:
    """Pairs of (name, language) by split. A name that several of these languages use is in none of them."""
    try:
        from babel import Locale
    except ImportError:
        raise MissingExtra("babel", "samples") from None
    languages_of: dict[str, set[str]] = {}
    for code in LANGUAGES:
        locale = Locale.parse(code)
        for name in (*locale.territories.values(), *locale.languages.values()):
            languages_of.setdefault(" ".join(name.split()), set()).add(LANGUAGES[code])
    pairs = sorted(
        (name, *languages) for name, languages in languages_of.items() if len(languages) == 1 and len(name) > 3
    )
    random.Random(SEED).shuffle(pairs)
    drawn: dict[str, list[tuple[str, str]]] = {}
    rest = [(name, language) for name, language in pairs]
    for part, share in SHARES.items():
        size = round(len(pairs) * share)
        drawn[part], rest = rest[:size], rest[size:]
    return {"train": rest} | drawn
