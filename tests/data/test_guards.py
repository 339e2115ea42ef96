"""What is hardly meant so is said before the wait, with the setting to type; what belongs together stays together."""

import csv
import json
import random
from collections import Counter

import pandas as pd
import pytest

from seqloom import Recipe
from seqloom.errors import DataError, SeqloomError
from tests.preparing import prepare_task

WORDS = (
    "river",
    "stone",
    "lamp",
    "garden",
    "window",
    "silver",
    "paper",
    "music",
    "winter",
    "summer",
    "letter",
    "bridge",
)
SETTINGS = ("data.train=rows.csv", "data.source=text", "data.target=label")


def make_rows(count=200, films=40):
    """Rows in which nothing is wrong, but that a film has several of them."""
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=9)) + f" {number}" for number in range(count)]
    return [
        {
            "id": str(1000 + number),
            "film": f"film {draw.randrange(films)}",
            "text": text,
            "date": f"20{number % 20:02}-0{number % 9 + 1}-17",
            "label": "good" if number % 3 else "bad",
        }
        for number, text in enumerate(texts)
    ]


def write(path, rows):
    with open(path / "rows.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def without(rows, *columns):
    return [{name: value for name, value in row.items() if name not in columns} for row in rows]


def repeat_nearly(rows):
    return [row | {"text": f"{rows[number // 2]['text']} again {number}"} for number, row in enumerate(rows)]


def write_about_neighbors(rows):
    """Five rows in a file are about one thing, which nothing else is about."""
    return [row | {"text": f"{row['text']} the{number // 5}thing of{number // 5}"} for number, row in enumerate(rows)]


PLAIN = without(make_rows(), "film")
ONCE = [*PLAIN, PLAIN[0] | {"text": "another", "label": "odd"}]
OTHER = "names another column"
SPELLED = [row | {"label": (row["label"], row["label"].upper())[number % 2]} for number, row in enumerate(PLAIN)]
UNKNOWN = [
    row | {"label": row["label"] if number % 5 else ("NA", "null")[number % 2]} for number, row in enumerate(PLAIN)
]
CASES = {
    "many labels": (PLAIN, ["data.target=id"], "200 different labels in 200 rows", "data.target_type=number"),
    "the other columns": (PLAIN, ["data.target=id"], "there are 'date', 'label'", f"data.target {OTHER}"),
    "a date as target": (PLAIN, ["data.target=date"], "the target seems to be dates", f"data.target {OTHER}"),
    "a date as source": (PLAIN, ["data.source=date"], "the source seems to be dates", f"data.source {OTHER}"),
    "an id as source": (PLAIN, ["data.source=id"], "the source seems to be ids", f"data.source {OTHER}"),
    "a label that occurs once": (ONCE, [], "1 of 3 labels occurs only once ('odd')", "data.min_label_count=2"),
    "labels in two spellings": (SPELLED, [], "the labels 'BAD', 'bad' differ only in", "each is a class of its own"),
    "labels that say missing": (
        UNKNOWN,
        [],
        "the target is 'NA', 'null' in some rows",
        "only an empty cell is missing",
    ),
    "groups in several parts": (make_rows(), [], "rows with the same 'film' are in several parts", "data.group=film"),
    "near duplicates": (repeat_nearly(PLAIN), [], "are nearly the same as one of training", "data.group=COLUMN"),
    "neighbors": (write_about_neighbors(PLAIN), [], "neighbors in the file belong together", "data.split_blocks=100"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_hardly_meant_is_said_with_the_setting_to_type(case, typed, tmp_path):
    rows, settings, words, setting = CASES[case]
    write(tmp_path, rows)
    out, _, code = typed("data", "classify", *SETTINGS, *settings, "--json")
    [warning, *_] = [one for one in json.loads(out)["report"]["warnings"] if words in one]
    assert code == 0 and setting in warning


def test_warnings_stand_at_the_end_of_the_report(typed, tmp_path):
    write(tmp_path, make_rows())
    out, _, code = typed("data", "classify", *SETTINGS)
    assert code == 0 and "data.group=film" in out[out.rindex("warning: rows with the same 'film'") :]


def test_nothing_is_said_where_nothing_is_wrong(typed, tmp_path):
    write(tmp_path, PLAIN)
    assert json.loads(typed("data", "classify", *SETTINGS, "--json")[0])["report"]["warnings"] == []
    write(tmp_path, make_rows())
    assert json.loads(typed("data", "classify", *SETTINGS, "data.group=film", "--json")[0])["report"]["warnings"] == []


def test_dates_are_what_a_pair_of_sequences_may_want(typed, tmp_path):
    write(tmp_path, PLAIN)
    said = json.loads(typed("data", "seq2seq", *SETTINGS, "data.target=date", "--json")[0])["report"]["warnings"]
    assert said == []


def test_one_class_only_is_refused(typed, tmp_path):
    write(tmp_path, [row | {"label": "good"} for row in PLAIN])
    _, err, code = typed("train", "classify", *SETTINGS, "--into", "run")
    assert code == 2 and err.splitlines()[-1].startswith("error: all 200 examples have the target 'good'")
    assert "data.target" in err and not (tmp_path / "run").exists()


def test_warnings_come_before_the_first_step_and_stay_with_the_run(typed, tmp_path):
    write(tmp_path, make_rows())
    command = ("train", "classify", *SETTINGS, "train.steps=2", "model.size=8", "--into", "run", "--json")
    records = [json.loads(line) for line in typed(*command)[0].splitlines()]
    first = next(place for place, record in enumerate(records) if record["kind"] != "note")
    said = [record["text"] for record in records[:first] if "data.group=film" in record["text"]]
    assert len(said) == 1 and "data.group=film" in (tmp_path / "run" / "README.md").read_text()
    assert "data.group=film" in json.loads((tmp_path / "run" / "data.json").read_text())["report"]["warnings"][0]


def test_rows_with_rare_labels_can_be_left_out_and_are_counted(tmp_path, typed):
    write(tmp_path, [*PLAIN, PLAIN[0] | {"text": "another", "label": "odd"}])
    report = json.loads(typed("data", "classify", *SETTINGS, "data.min_label_count=2", "--json")[0])["report"]
    [(reason, counted)] = report["skipped"].items()
    assert counted["rows"] == 1 and "fewer than 2 times" in reason and "'odd'" in counted["first"]
    assert report["rows_read"] == 201 and report["vocabulary"]["target"] == 2 and report["warnings"] == []


# --- parts ----------------------------------------------------------------------------------------------------------


def parts_of(path, *settings, rows=None, recipe="classify"):
    """The texts of each part, from a file or from a data frame."""
    examples = None if rows is None else pd.DataFrame(rows)
    given = (
        ("data.source=text", "data.target=label")
        if rows is not None
        else (f"data.train={path / 'rows.csv'}", *SETTINGS[1:])
    )
    _, prepared = prepare_task(Recipe.read(recipe, *given, *settings).resolved(), lambda line: None, examples)
    return {part: list(split.raws["source"]) for part, split in prepared.splits.items()}, prepared.report


@pytest.mark.parametrize("framed", [False, True])
def test_a_group_is_never_divided(tmp_path, framed):
    rows = make_rows()
    write(tmp_path, rows)
    film = {row["text"]: row["film"] for row in rows}
    parts, report = parts_of(tmp_path, "data.group=film", rows=rows if framed else None)
    films = [{film[text] for text in texts} for texts in parts.values()]
    assert sum(map(len, films)) == len(set.union(*films)) == len(set(film.values()))
    assert all(10 <= len(texts) <= 20 for part, texts in parts.items() if part != "train")
    alone, _ = parts_of(tmp_path, rows=rows if framed else None)
    assert sum(len({film[text] for text in texts}) for texts in alone.values()) > 50  # what the group has prevented


def test_rows_without_a_group_stand_alone(tmp_path):
    rows = [row | {"film": "" if number % 2 else row["film"]} for number, row in enumerate(make_rows())]
    write(tmp_path, rows)
    parts, _ = parts_of(tmp_path, "data.group=film")
    assert sum(map(len, parts.values())) == 200 and len(parts["test"]) > 10


def test_equal_sources_are_never_divided_unless_that_is_asked(tmp_path):
    write(tmp_path, [row | {"text": PLAIN[number % 60]["text"]} for number, row in enumerate(PLAIN)])
    parts, report = parts_of(tmp_path)
    assert not set(parts["train"]) & {*parts["validation"], *parts["test"]}
    assert report.splits["test"].overlap == 0 and not report.warnings
    apart, report = parts_of(tmp_path, "data.split_duplicates=apart")
    assert set(apart["train"]) & set(apart["test"])
    assert any("data.split_duplicates=together" in warning for warning in report.warnings)


def test_very_few_different_sources_are_in_every_part_and_that_is_said(tmp_path):
    write(tmp_path, [row | {"text": f"text {number % 3}"} for number, row in enumerate(PLAIN)])
    parts, report = parts_of(tmp_path)
    assert all(len(set(texts)) == 3 for texts in parts.values())
    assert any("20 of 20 test examples (100%)" in one and "fewer than 20" in one for one in report.warnings)


def test_given_parts_that_share_examples_are_said_with_counts(tmp_path, typed):
    write(tmp_path, PLAIN)
    (tmp_path / "rows.csv").rename(tmp_path / "test.csv")
    write(tmp_path, PLAIN[:50] + [row | {"text": row["text"] + " new"} for row in PLAIN[50:]])
    small = ("model.kind=bag", "model.size=4", "train.steps=2", "--into", "run")
    _, err, code = typed("train", "classify", *SETTINGS, "data.test=test.csv", *small)
    assert code == 0 and "of 200 test examples (" in err and "have a source that is one of training" in err
    saved = json.loads((tmp_path / "run" / "data.json").read_text())["report"]["splits"]["test"]["overlap"]
    assert 30 < saved <= 50
    assert typed("look", "run", "--view", "all", "--out", "page.html")[2] == 0
    page = (tmp_path / "page.html").read_text()
    assert "never saw" not in page and f"{saved} of which have an input that is one of training" in page


def test_blocks_of_a_file_stay_together(tmp_path):
    write(tmp_path, PLAIN)
    parts, _ = parts_of(tmp_path, "data.split_blocks=10")
    place = {row["text"]: number // 10 for number, row in enumerate(PLAIN)}
    blocks = [{place[text] for text in texts} for texts in parts.values()]
    assert sum(map(len, blocks)) == len(set.union(*blocks)) == 20 and [len(one) for one in blocks] == [16, 2, 2]


@pytest.mark.parametrize("format", ["%Y-%m-%d", "%d.%m.%Y", "{}"])
def test_time_divides_the_old_from_the_new(tmp_path, format):
    times = random.Random(1).sample(range(1000), len(PLAIN))
    days = [
        str(time) if format == "{}" else (pd.Timestamp("2020-01-01") + pd.Timedelta(days=time)).strftime(format)
        for time in times
    ]
    write(tmp_path, [row | {"date": day} for row, day in zip(PLAIN, days, strict=True)])
    parts, _ = parts_of(tmp_path, "data.split_time=date")
    when = {row["text"]: time for row, time in zip(PLAIN, times, strict=True)}
    train, validation, test = ([when[text] for text in texts] for texts in parts.values())
    assert max(train) < min(validation) <= max(validation) < min(test) and len(test) == len(validation) == 20


def test_the_folds_are_every_row_once_and_alike_in_their_labels(tmp_path):
    write(tmp_path, make_rows())
    label = {row["text"]: row["label"] for row in make_rows()}
    film = {row["text"]: row["film"] for row in make_rows()}
    for more in ((), ("data.group=film",)):
        folds = [parts_of(tmp_path, "data.folds=5", f"data.fold={fold}", *more)[0] for fold in range(5)]
        assert Counter(text for fold in folds for text in fold["test"]) == Counter(list(label))
        for fold in folds:
            assert sum(map(len, fold.values())) == 200 and len(fold["validation"])
            if more:
                assert not {film[text] for text in fold["test"]} & {film[text] for text in fold["train"]}
            else:
                assert (
                    abs(sum(label[text] == "good" for text in fold["test"]) - 133 / 5) < 2 and len(fold["test"]) == 40
                )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["data.split_time=label"], "holds '(good|bad)', but"),
        (["data.group=films"], "no column 'films'.*did you mean 'film'"),
        (["data.group=film", "data.split_time=date"], "choose one"),
        (["data.fold=1"], "folds are 2 or more, numbered from 0"),
        (["data.folds=5", "data.test=rows.csv"], "data.test names a file: choose one"),
        (["data.group=label"], "too few to draw"),
        (["data.group=film", "data.test=rows.csv", "data.validation=rows.csv"], "both have files of their own"),
        (["data.min_label_count=200"], "no label occurs 200 times"),
    ],
)  # fmt: skip
def test_what_cannot_divide_is_refused_in_a_sentence(tmp_path, monkeypatch, settings, words):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, make_rows())
    with pytest.raises(SeqloomError, match=words):
        parts_of(tmp_path, *settings)


def test_where_there_are_no_columns_a_group_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.conll").write_text("a X\nb Y\n\n" * 30)
    (tmp_path / "text.txt").write_text("a b c\n" * 300)
    for recipe, settings, words in (
        ("tag", ["data.train=words.conll", "data.group=film"], "only tables have"),
        ("language", ["data.train=text.txt", "data.folds=5"], "this is one text.*data.documents"),
        ("language", ["data.train=text.txt", "data.documents=lines", "data.group=film"], "only tables have columns"),
        ("classify", ["data.group=film"], "the sample 'names' has no columns"),
        ("chorales", ["data.group=film"], "have no columns"),
    ):
        with pytest.raises(DataError, match=words):
            prepare_task(Recipe.read(recipe, *settings).resolved(), lambda line: None)
    with pytest.raises(DataError, match="only a data frame has"):
        prepare_task(Recipe.read("classify", "data.group=film").resolved(), print, [("a", "b")] * 9)


def test_documents_of_a_table_stay_with_their_group(tmp_path):
    rows = make_rows(60, films=12)
    write(tmp_path, rows)
    recipe = Recipe.read("language", f"data.train={tmp_path / 'rows.csv'}", "data.target=text", "data.group=film")
    _, prepared = prepare_task(recipe.resolved(), lambda line: None)
    film = {row["text"]: row["film"] for row in rows}
    found = [{film[text] for text in split.raws["target"]} for split in prepared.splits.values()]
    assert sum(map(len, found)) == 12


def test_folds_are_trained_with_one_command(typed, tmp_path):
    write(tmp_path, PLAIN[:60])
    command = ("train", "classify", *SETTINGS, "model.size=8", "train.steps=2", "--folds", "3", "--into", "runs")
    out, _, code = typed(*command)
    assert code == 0 and "3 folds" in out and "±" in out
    summary = json.loads((tmp_path / "runs" / "folds.json").read_text())
    own = [json.loads((tmp_path / "runs" / f"fold-{fold}" / "scores.json").read_text()) for fold in range(3)]
    assert summary["folds"] == [0, 1, 2] and summary["examples"] == 60 == sum(one["examples"] for one in own)
    values = [one["scores"]["accuracy"]["value"] for one in own]
    assert summary["scores"]["accuracy"]["values"] == values
    assert summary["scores"]["accuracy"]["mean"] == pytest.approx(sum(values) / 3)
    assert "is finished" in typed(*command)[1]
    assert "both given" in typed(*command, "--seeds", "2")[1]
    assert typed("train", "forecast", "--folds", "3")[2] == 2
