"""The built-in samples: the same every time, one meaning a text, nothing of the examination in the lessons."""

import hashlib
import json
import os
import subprocess
import sys
from datetime import date, timedelta

import pytest

from seqloom.data.samples import SAMPLES
from seqloom.data.samples.dates import (
    FIRST_DAY,
    LAST_DAY,
    LOCALES,
    SPLIT_SIZES,
    WrittenDate,
    date_forms,
    dates_with_locales,
)
from seqloom.errors import MissingExtra


@pytest.fixture(scope="module")
def examples() -> dict[str, list[WrittenDate]]:
    return dates_with_locales()


def test_the_splits_have_the_sizes_they_promise(examples):
    assert {split: len(found) for split, found in examples.items()} == SPLIT_SIZES


def test_the_sample_is_the_one_with_locales_without_them(examples):
    assert SAMPLES["dates"]() == {split: [(e.source, e.target) for e in found] for split, found in examples.items()}


def test_another_process_makes_the_same_sample(examples):
    program = (
        "import hashlib, json; from seqloom.data.samples.dates import dates_with_locales; "
        "print(hashlib.sha256(json.dumps(dates_with_locales()).encode()).hexdigest())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == hashlib.sha256(json.dumps(examples).encode()).hexdigest()


def test_no_date_and_no_text_is_in_two_splits(examples):
    for part in ("source", "target"):
        seen = [{getattr(example, part) for example in found} for found in examples.values()]
        assert sum(map(len, seen)) == len(set().union(*seen))


def test_every_target_is_an_iso_date_of_the_span(examples):
    for found in examples.values():
        for example in found:
            day = date.fromisoformat(example.target)
            assert day.isoformat() == example.target and FIRST_DAY <= day <= LAST_DAY


def test_every_text_is_what_its_locale_writes_for_its_date(examples):
    forms = date_forms(LOCALES)
    for found in examples.values():
        for source, target, locale, _ in found:
            assert source in {form.write(date.fromisoformat(target)) for form in forms[locale]}


def test_every_split_knows_every_language_and_names_it(examples):
    for found in examples.values():
        assert {example.locale for example in found} == set(LOCALES)
    language = {example.locale: example.language for example in examples["test"]}
    assert (language["de"], language["pt_BR"]) == ("German", "Portuguese (Brazil)")


def test_every_character_of_the_examination_was_in_the_lessons(examples):
    taught = {character for example in examples["train"] for character in example.source}
    asked = {c for split in ("validation", "test") for example in examples[split] for c in example.source}
    assert asked <= taught


def test_no_text_stands_for_two_dates_in_any_form_on_any_day_of_a_year():
    # The year is spelled out in every form, so two dates with one text would be two days of one year.
    meaning: dict[str, date] = {}
    for forms in date_forms(LOCALES).values():
        for form in forms:
            for day in (date(2024, 1, 1) + timedelta(days=number) for number in range(366)):
                text = form.write(day)
                assert meaning.setdefault(text, day) == day, f"{text}: {meaning[text]} and {day} ({form.locale})"


def test_the_year_is_spelled_out_in_every_form():
    for forms in date_forms(LOCALES).values():
        for form in forms:
            assert form.write(date(1931, 5, 8)) != form.write(date(2031, 5, 8))


def test_numbers_with_slashes_stay_while_all_agree_and_go_when_americans_join():
    seventh_of_october = date(2021, 10, 7)

    def texts(*locales: str) -> set[str]:
        return {f.write(seventh_of_october) for forms in date_forms(locales).values() for f in forms}

    assert "07/10/2021" in texts("en_GB")
    assert "10/7/2021" in texts("en_US")
    assert not {"07/10/2021", "10/7/2021"} & texts("en_GB", "en_US")


def test_dates_that_need_no_reading_are_among_the_examples(examples):
    # A locale that writes year, day, month would make this form ambiguous, and so take it from all the others.
    assert any(source == target for source, target, *_ in examples["test"])


def test_languages_write_their_own_digits_and_plain_blanks():
    [marathi, *_] = date_forms(["mr"])["mr"]
    assert "२०२१" in marathi.write(date(2021, 10, 7))
    for locale in LOCALES:
        for form in date_forms([locale])[locale]:  # alone, so that the forms with slashes are among them
            text = form.write(date(2021, 10, 7))
            assert text == " ".join(text.split()) and not set(text) & set("\u200e\u200f\u061c\u00a0\u202f")


def test_without_babel_one_sentence_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(MissingExtra, match=r"^babel .* pip install 'seqloom\[samples\]'$"):
        SAMPLES["dates"]()
