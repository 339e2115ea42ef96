"""Asking a trained run with files of one's own: from a messy table to a table of answers, through the command line."""

import csv
import gzip
import json
import random
import sys
from itertools import count, islice

import numpy as np
import openpyxl
import pandas
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from seqloom.cli import terminal
from seqloom.cli.predict import watch_progress
from seqloom.config.recipe import Recipe
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.inputs import ALONE, Input, InputFile
from seqloom.errors import DataError, RunError
from seqloom.runs.answers import Answers
from seqloom.runs.run import load, train

QUEUES = {"billing": "invoice refund charged", "login": "password locked code", "delivery": "parcel late lost"}
TINY = ("model.size=8", "train.batch_tokens=512", "train.steps=3", "train.validate_every=3")


def tickets(amount, seed=0):
    """Messages of two lines with quotes and semicolons in them, and the queue that each belongs to."""
    chance = random.Random(seed)
    for number in range(amount):
        queue = chance.choice(list(QUEUES))
        words = chance.choices(QUEUES[queue].split(), k=3)
        yield {"id": str(number), "message": f'{words[0]} {words[1]};\nhe said "{words[2]}"', "queue": queue}


def write_csv(path, rows, columns, encoding="utf-8-sig", delimiter=";"):
    with open(path, "w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=delimiter, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier of tickets."""
    folder = tmp_path_factory.mktemp("tickets")
    write_csv(folder / "tickets.csv", tickets(120), ["id", "message", "queue"])
    settings = (f"data.train={folder / 'tickets.csv'}", "data.source=message", "data.target=queue")
    recipe = Recipe.read("classify", *settings, "data.source_tokenizer=words", *TINY)
    list(train(recipe, folder / "run"))
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return folder / "run"


def test_a_table_becomes_a_table_with_its_columns_and_the_answers(seqloom, run, tmp_path):
    rows = list(tickets(40, 1))
    asked, out = write_csv(tmp_path / "new.csv", rows, ["id", "message"]), tmp_path / "answers.csv"
    code, said, notes = seqloom("predict", run, "--file", asked, "--out", out)
    assert code == 0 and "40 rows; added prediction, probability" in said
    assert "divided by semicolons" in notes
    found, expected = read_csv(out), load(run).predict([row["message"] for row in rows])
    assert list(found[0]) == ["id", "message", "prediction", "probability"]
    assert [(row["id"], row["message"]) for row in found] == [(row["id"], row["message"]) for row in rows]
    assert [row["prediction"] for row in found] == [best.output for best, *_ in expected]
    assert [float(row["probability"]) for row in found] == pytest.approx([best.probability for best, *_ in expected])
    assert all(0 <= float(row["probability"]) <= 1 for row in found)


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "csv.gz", "parquet", "xlsx"])
def test_every_format_of_training_is_read_and_says_the_same(seqloom, run, tmp_path, ending):
    texts = [row["message"].replace("\n", " ") for row in tickets(9, 2)]
    file = tmp_path / f"new.{ending}"
    lines = [{"n": str(number), "message": text} for number, text in enumerate(texts)]
    if ending == "tsv":
        file.write_text("n\tmessage\n" + "".join(f"{one['n']}\t{one['message']}\n" for one in lines))
    elif ending == "jsonl":
        file.write_text("".join(json.dumps(one | {"nested": {"deep": [1, 2.5]}}) + "\n" for one in lines))
    elif ending == "csv.gz":
        write_csv(tmp_path / "plain.csv", lines, ["n", "message"])
        file.write_bytes(gzip.compress((tmp_path / "plain.csv").read_bytes()))
    elif ending == "parquet":
        columns = {"n": [one["n"] for one in lines], "message": texts, "codes": [[1, 2]] * 9}
        parquet.write_table(arrow.table(columns), file)
    else:
        book = openpyxl.Workbook()
        for row in [["n", "message"], *([one["n"], one["message"]] for one in lines)]:
            book.active.append(row)
        book.save(file)
    code, said, notes = seqloom("predict", run, "--file", file, "--out", tmp_path / "answers.jsonl")
    assert code == 0, notes
    found = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [(row["n"], row["message"]) for row in found] == [(one["n"], one["message"]) for one in lines]
    assert [row["prediction"] for row in found] == [best.output for best, *_ in load(run).predict(texts)]
    if ending == "jsonl":
        assert found[0]["nested"] == {"deep": [1, 2.5]}
    if ending == "parquet":
        assert "the columns codes hold no texts or numbers" in notes


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_of_answers_can_be_read_again(seqloom, run, tmp_path, ending):
    asked = write_csv(tmp_path / "new.csv", tickets(7, 3), ["id", "message"])
    out = tmp_path / f"answers.{ending}"
    code, said, notes = seqloom("predict", run, "--file", asked, "--out", out, "--best", 2, "--probabilities")
    assert code == 0 and "prediction_2, probability_2, probability of " in said, notes
    assert ("7 cells with tabs or line breaks" in notes) == (ending == "tsv")
    code, again, _ = seqloom("predict", run, "--file", out, "--json")
    rows = [json.loads(line)["row"] for line in again.splitlines()]
    loaded = load(run)
    messages = [row["message"] for row in tickets(7, 3)]
    for row, probabilities in zip(rows, loaded.predict_proba(messages), strict=True):
        told = [float(row[f"probability of {name}"]) for name in loaded.classes]
        assert told == pytest.approx(probabilities.tolist()) and sum(told) == pytest.approx(1)
        assert float(row["probability"]) == pytest.approx(max(told))
        assert row["prediction"] == loaded.classes[int(np.argmax(told))] != row["prediction_2"]


def test_a_table_without_the_columns_of_the_run_is_refused_with_those_it_has(seqloom, run, tmp_path):
    asked = write_csv(tmp_path / "new.csv", [{"id": "1", "messages": "a"}], ["id", "messages"])
    code, said, error = seqloom("predict", run, "--file", asked, "--out", tmp_path / "answers.csv")
    assert code == 2 and not said and not (tmp_path / "answers.csv").exists()
    assert "there is no column 'message', which this run reads; there are 'id', 'messages'" in error
    assert "did you mean 'messages'" in error and len(error.splitlines()) == 1
    code, said, _ = seqloom("predict", run, "--file", asked, "--source", "messages")
    assert code == 0 and said.strip() in QUEUES


def test_a_bad_row_stops_it_and_leaves_nothing_or_is_left_out_and_counted(seqloom, run, tmp_path):
    asked, out = write_csv(tmp_path / "new.csv", tickets(3000, 4), ["id", "message"]), tmp_path / "answers.csv"
    with open(asked, "a", encoding="utf-8") as file:
        file.write("3000;\n3001;one;too many\n3002;late parcel\n")
    code, said, error = seqloom("predict", run, "--file", asked, "--out", out)
    assert code == 2 and "new.csv, line 6002: the column 'message' is empty" in error
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    code, said, notes = seqloom("predict", run, "--file", asked, "--out", out, "--on-bad-row", "skip")
    assert code == 0 and len(read_csv(out)) == 3001 and read_csv(out)[-1]["id"] == "3002"
    assert "2 of 3,003 inputs skipped, without an answer: 1 for empty 'message' (first in" in notes
    assert "new.csv, line 6002)" in notes and notes.rstrip().endswith("lines 6002, 6003")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "answers.doc", "a"], "one of .csv, .tsv, .jsonl, .parquet was expected"),
        (["--out", "no/answers.csv", "a"], "there is no folder for it"),
        (["--out", "answers.csv", "--json", "a"], "choose one"),
        (["--probabilities", "a"], "add --out"),
        (["--on-bad-row", "ignore", "a"], "error or skip was expected"),
        (["--source", "b", "a"], "add --file"),
        (["--file", "lines.txt", "--format", "doc"], "but one of csv, tsv"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(seqloom, run, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("a\n")
    code, said, error = seqloom("predict", run, *words)
    assert code == 2 and sentence in error and len(error.splitlines()) == 1 and not said


def test_several_files_and_patterns_are_answered_one_after_the_other(seqloom, run, tmp_path):
    rows = list(tickets(9, seed=3))
    parts = [tmp_path / f"part-{place}.csv" for place in range(3)]
    for place, part in enumerate(parts):
        write_csv(part, rows[3 * place : 3 * place + 3], ["id", "message"])
    every = ("predict", run, "--file", tmp_path / "part-*.csv", "--out")
    assert seqloom(*every, tmp_path / "all.csv")[0] == 0
    assert [row["id"] for row in read_csv(tmp_path / "all.csv")] == [row["id"] for row in rows]
    assert seqloom("predict", run, "--file", parts[2], "--file", parts[0], "--out", tmp_path / "two.csv")[0] == 0
    assert [row["id"] for row in read_csv(tmp_path / "two.csv")] == [row["id"] for row in rows[6:] + rows[:3]]
    code, _, error = seqloom(*every, parts[1])
    assert code == 2 and "part-1.csv: this is the file of the inputs" in error
    code, _, error = seqloom("predict", run, "--file", "-", "--file", parts[0])
    assert code == 2 and "standard input is read by itself" in error
    write_csv(tmp_path / "part-3.csv", rows, ["message", "id"])
    code, _, error = seqloom(*every, tmp_path / "none.csv")
    assert code == 2 and "part-3.csv: files that are answered together have the same columns" in error
    assert not (tmp_path / "none.csv").exists()


def test_a_pattern_of_files_is_scored_as_one(run, tmp_path):
    rows = list(tickets(30, seed=4))
    for place in range(3):
        write_csv(tmp_path / f"part-{place}.csv", rows[10 * place : 10 * place + 10], ["id", "message", "queue"])
    whole = load(run).score(write_csv(tmp_path / "whole.csv", rows, ["id", "message", "queue"]))
    parts = load(run).score(str(tmp_path / "part-*.csv"))
    assert parts["examples"] == 30 and parts["scores"] == whole["scores"]


def test_answers_are_never_written_over_their_inputs_nor_over_a_column(seqloom, run, tmp_path):
    asked = write_csv(tmp_path / "new.csv", [{"prediction": "x", "message": "a"}], ["prediction", "message"])
    code, _, error = seqloom("predict", run, "--file", asked, "--out", asked)
    assert code == 2 and "this is the file of the inputs" in error
    code, _, error = seqloom("predict", run, "--file", asked, "--out", tmp_path / "out.csv")
    assert code == 2 and "a column 'prediction'" in error and not (tmp_path / "out.csv").exists()


def test_standard_input_is_a_table_as_training_had_it_or_as_said(seqloom, run, tmp_path):
    asked = write_csv(tmp_path / "new.csv", tickets(5, 5), ["id", "message"])
    _, expected, _ = seqloom("predict", run, "--file", asked)
    code, said, notes = seqloom("predict", run, "--file", "-", stdin=asked.read_bytes())
    assert code == 0 and said == expected and "standard input: the columns are divided by semicolons" in notes
    code, _, error = seqloom("predict", run, "--file", "-", stdin="id;text\n1;a\n")
    assert code == 2 and "standard input, line 1: there is no column 'message'" in error
    objects = "".join(json.dumps({"message": row["message"]}) + "\n" for row in tickets(5, 5))
    assert seqloom("predict", run, "--file", "-", "--format", "jsonl", stdin=objects)[1] == expected


def test_a_folder_of_texts_is_a_text_a_file(seqloom, run, tmp_path):
    for number, row in enumerate(tickets(4, 6)):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{number}.txt").write_text(row["message"])
    code, said, _ = seqloom("predict", run, "--file", tmp_path / "in", "--out", tmp_path / "out.csv")
    found = read_csv(tmp_path / "out.csv")
    assert code == 0 and [row["input"][-5:] for row in found] == [f"{number}.txt" for number in range(4)]
    assert [row["prediction"] for row in found] == [
        best.output for best, *_ in load(run).predict([row["message"] for row in tickets(4, 6)])
    ]


def test_the_likeliest_answers_are_shown_with_probabilities(seqloom, run):
    code, said, _ = seqloom("predict", run, "late parcel", "--best", 3)
    numbers = [float(line.split()[0]) for line in said.splitlines()[1:]]
    assert code == 0 and sum(numbers) == pytest.approx(1, abs=1e-3) and numbers == sorted(numbers, reverse=True)


# --- from Python ------------------------------------------------------------------------------------------------


def test_one_text_a_list_a_column_a_frame_and_a_file_from_python(run, tmp_path):
    loaded, rows = load(run), list(tickets(6, 7))
    texts = [row["message"] for row in rows]
    expected = [loaded.predict(text)[0].output for text in texts]
    file = write_csv(tmp_path / "new.csv", rows, ["id", "message"])
    frame = pandas.DataFrame(rows)
    for several in (texts, pandas.Series(texts), np.array(texts), np.array(texts, dtype=object), frame, file):
        assert [best.output for best, *_ in loaded.predict(several)] == expected
        assert loaded.predict_proba(several).shape == (6, 3)
    proba = loaded.predict_proba(texts)
    assert np.allclose(proba.sum(1), 1) and [loaded.classes[place] for place in proba.argmax(1)] == expected
    assert np.allclose(loaded.predict_proba(texts[0]), proba[:1]) and loaded.predict([]) == []
    with pytest.raises(DataError, match="the data frame has no column 'message'; there are id"):
        loaded.predict(frame[["id"]])
    with pytest.raises(DataError, match=r"an input is None, but a text was expected \(input 1, counted from 0\)"):
        loaded.predict([texts[0], None])
    frame.loc[2, "message"] = None
    with pytest.raises(DataError, match="row 2 of the data frame: the source is missing"):
        loaded.predict(frame)


def test_inputs_are_answered_as_they_come_however_many_there_are(run):
    endless = (Input(f"parcel {number}", f"parcel {number}", {ALONE: ""}, "endless", number) for number in count(1))
    answers = Answers(load(run), InputFile((ALONE,), endless), SkippedRows(), size=8)
    assert [one.line for one, _ in islice(answers, 20)] == list(range(1, 21))


def test_a_bar_says_how_far_it_is_where_somebody_watches(run, folder, monkeypatch):
    seen, loaded, skipped = [], load(run), SkippedRows()
    monkeypatch.setattr(terminal, "show_progress", lambda answers, last: seen.append(last) or iter(answers))
    table = loaded.task.read_inputs(str(folder / "tickets.csv"), skipped=skipped)
    assert len(list(watch_progress(Answers(loaded, table, skipped)))) == 120 and not seen
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    table = loaded.task.read_inputs(str(folder / "tickets.csv"), skipped=skipped)
    assert len(list(watch_progress(Answers(loaded, table, skipped)))) == 120 and seen == [table.last] != [0]


def test_what_has_no_classes_has_no_probabilities_of_them(tmp_path, seqloom):
    pairs = [("ab", "ba"), ("cd", "dc")] * 20
    list(train(Recipe.read("seq2seq", *TINY), tmp_path / "run", examples=pairs))
    with pytest.raises(RunError, match="has no classes"):
        load(tmp_path / "run").predict_proba(["ab"])
    (tmp_path / "in.txt").write_text("ab\ncd\n")
    words = ("--file", tmp_path / "in.txt", "--out", tmp_path / "out.csv")
    assert seqloom("predict", tmp_path / "run", *words, "--probabilities")[0] == 2
    code, *_ = seqloom("predict", tmp_path / "run", *words, "--beam", 2)
    [first, _] = read_csv(tmp_path / "out.csv")
    [best, second] = load(tmp_path / "run").predict("ab", beam=2)
    assert code == 0 and first["input"] == "ab" and first["prediction_2"] == second.output
    # The probability of just these tokens, and their geometric mean: both from 0 to 1.
    assert float(first["probability"]) == pytest.approx(np.exp(sum(best.logs)))
    assert float(first["token_probability"]) == pytest.approx(np.exp(np.mean(best.logs)))
