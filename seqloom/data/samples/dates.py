"""Dates as people of many languages write them, and what they mean: a sample for sequence-to-sequence models."""

import random
from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from seqloom.errors import MissingExtra

if TYPE_CHECKING:
    from babel import Locale
    from babel.dates import DateTimePattern

FIRST_DAY, LAST_DAY = date(1930, 1, 1), date(2069, 12, 31)
SPLIT_SIZES = {"train": 20_000, "validation": 1_000, "test": 1_000}
DATES_SEED = 1582  # the year of the calendar all of these dates are written in

# One line a script or family. Kyrgyz is left out on purpose: its 2021-07-10 is the tenth of July nowhere else.
LOCALES = (
    *("en_US", "en_GB", "de", "nl", "af", "sv", "nb", "da", "is", "fr", "es", "ca", "it", "pt_BR", "ro"),
    *("pl", "cs", "sk", "sl", "hr", "lt", "lv", "et", "fi", "hu", "sq", "cy", "ga", "eu"),
    *("tr", "az", "id", "fil", "sw", "vi"),
    *("ru", "uk", "be", "bg", "sr", "mk", "kk", "mn"),
    *("el", "hy", "ka", "am"),
    *("he", "ar_EG", "ar_MA", "fa", "ur"),
    *("hi", "mr", "ne", "bn", "gu", "pa", "ta", "te", "kn", "ml", "si"),
    *("th", "lo", "km", "my"),
    *("zh_Hans", "zh_Hant", "ja", "ko"),
)
STYLES = ("full", "long", "medium", "short")
SKELETONS = ("yMMMMEEEEd", "yMMMMd", "yMMMEd", "yMMMd", "yMd")

# Where a language's own ten digits begin in Unicode; Babel itself writes every date with 0-9.
DIGIT_ZERO = {"arab": 0x0660, "arabext": 0x06F0, "deva": 0x0966, "beng": 0x09E6, "mymr": 0x1040}
DIRECTION_MARKS = {0x200E: None, 0x200F: None, 0x061C: None}  # nobody types them


class WrittenDate(NamedTuple):
    """A date as somebody wrote it, and what it means."""

    source: str
    target: str  # ISO 8601
    locale: str
    language: str  # the locale's name in English


class DateForm(NamedTuple):
    """One way to write a date: a locale and one of its patterns."""

    locale: "Locale"
    pattern: "DateTimePattern"

    def write(self, day: date) -> str:
        """`day` in this form, with the language's own digits and plain blanks."""
        text = self.pattern.apply(day, self.locale)
        zero = DIGIT_ZERO.get(self.locale.default_numbering_system)
        if zero is not None:
            text = text.translate({ord(str(digit)): zero + digit for digit in range(10)})
        return " ".join(text.translate(DIRECTION_MARKS).split())


def dates() -> dict[str, list[tuple[str, str]]]:
    """Dates as people of many languages write them → ISO dates."""
    return {
        split: [(example.source, example.target) for example in examples]
        for split, examples in dates_with_locales().items()
    }


def dates_with_locales() -> dict[str, list[WrittenDate]]:
    """The sample `dates` with the language of each example.

    Every example is another day, so whatever is asked in validation and test was never seen in training. In each
    split the languages take turns, and so do the forms of each language. The same version of Babel gives the same
    examples; another one may spell a month differently.
    """
    forms = date_forms(LOCALES)
    draw = random.Random(DATES_SEED).random  # the one method of its class whose stream is promised to stay
    days = sorted(range(FIRST_DAY.toordinal(), LAST_DAY.toordinal() + 1), key=lambda _: draw())
    splits: dict[str, list[WrittenDate]] = {}
    for split, size in SPLIT_SIZES.items():
        splits[split] = []
        for number, ordinal in enumerate(days[:size]):
            turn, position = divmod(number, len(LOCALES))
            name = LOCALES[position]
            form, day = forms[name][turn % len(forms[name])], date.fromordinal(ordinal)
            splits[split].append(WrittenDate(form.write(day), day.isoformat(), name, form.locale.english_name or name))
        del days[:size]
    return splits


def date_forms(locales: Iterable[str]) -> dict[str, list[DateForm]]:
    """Every form of each locale that names one date only, whoever reads it."""
    try:
        from babel import Locale
    except ImportError:
        raise MissingExtra("babel", "samples") from None
    forms = {name: _list_full_year_forms(Locale.parse(name)) for name in locales}
    ambiguous = _find_ambiguous_shapes(form for group in forms.values() for form in group)
    return {name: [f for f in group if _shape(f) not in ambiguous] for name, group in forms.items()}


def _list_full_year_forms(locale: "Locale") -> list[DateForm]:
    """The locale's forms, each once, without those that cut the year to two digits."""
    patterns = [locale.date_formats[style] for style in STYLES]
    patterns += [locale.datetime_skeletons[name] for name in SKELETONS if name in locale.datetime_skeletons]
    once = {pattern.pattern: pattern for pattern in patterns}
    return [DateForm(locale, p) for text, p in once.items() if "yy" not in _fields(text)]


def _find_ambiguous_shapes(forms: Iterable[DateForm]) -> set[str]:
    """Shapes of all-number dates that some read day first and others month first, such as 7/10/2021."""
    order_of: dict[str, list[str]] = {}
    ambiguous = set()
    for form in forms:
        order = [field[0] for field in _fields(form.pattern.pattern) if field[0] in "dML"]
        if order_of.setdefault(_shape(form), order) != order:
            ambiguous.add(_shape(form))
    return ambiguous


def _shape(form: DateForm) -> str:
    """What is left of a form for a reader who tells years from other numbers but not days from months."""
    numbers = {"d", "dd", "M", "MM", "L", "LL"}
    shown = ("#" if is_field and text in numbers else text for is_field, text in _parts(form.pattern.pattern))
    return "".join("".join(shown).translate(DIRECTION_MARKS).split())


def _fields(pattern: str) -> list[str]:
    return [text for is_field, text in _parts(pattern) if is_field]


def _parts(pattern: str) -> list[tuple[bool, str]]:
    """A locale's pattern such as "d. MMM y" in pieces: is it a field, and how it is written."""
    from babel.dates import tokenize_pattern

    parts = []
    for _, value in tokenize_pattern(pattern):
        if isinstance(value, str):
            parts.append((False, value))
        else:
            letter, length = value
            parts.append((True, letter * length))
    return parts
