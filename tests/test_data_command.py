"""`seqloom data`, and the same before training: examples as the model sees them, and what was done to the data."""

import json

import pytest
from PIL import Image


def write_reviews(path, rows=60):
    lines = [
        f'{number},"the {word} film\x1b[31m number {number} {"very " * number}\nlong",{label}'
        for number in range(rows)
        for word, label in [("good", "pos") if number % 2 else ("bad", "neg")]
    ]
    path.write_text("id,text,label\n" + "\n".join(lines) + "\n")


SETTINGS = ("data.train=reviews.csv", "data.source=text", "data.target=label", "data.source_tokenizer=words")


def test_examples_are_shown_raw_and_as_the_model_reads_them(typed, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    out, _, code = typed("data", "classify", *SETTINGS, "data.max_length=20")
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines())
    assert out.count("training example") == 3
    assert "source (text): the bad film\\x1b[31m number 0" in out and "\x1b" not in out
    assert "the · bad · film" in out and "target (label): neg" in out and "read as 1 element: neg (" in out
    assert "read as 20 of" in out  # and this is the one that is dropped as too long
    assert "60 rows read" in out


def test_the_same_for_programs(typed, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    out, _, code = typed("data", "classify", *SETTINGS, "--json")
    found = json.loads(out)
    assert code == 0 and found["task"] == "classify" and found["columns"] == {"source": "text", "target": "label"}
    first = found["examples"][0]
    assert first["source"]["raw"].startswith("the bad film\x1b[31m") and first["source"]["elements"][:2] == [
        "the",
        "bad",
    ]
    assert first["target"]["raw"] == "neg" and found["report"]["rows_read"] == 60
    assert not list(tmp_path.glob("runs"))


def test_what_was_skipped_is_told(typed, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    with open(tmp_path / "reviews.csv", "a") as file:
        file.write("61,,pos\n")
    out, _, code = typed("data", "classify", *SETTINGS, "data.on_bad_row=skip")
    assert code == 0 and "1 row skipped" in out


def test_a_mistake_is_one_sentence(typed, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    out, err, code = typed("data", "classify", *SETTINGS, "data.target=lable")
    assert code == 2 and not out and err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("recipe", "found"),
    [("forecast", "rows from 1958-03-29 to"), ("chorales", "no examples")],
)
def test_other_kinds_of_data(typed, recipe, found):
    assert found in "".join(typed("data", recipe)[:2])


def test_numbers(typed, tmp_path):
    (tmp_path / "table.csv").write_text("a,b,kind\n" + "".join(f"{n},{n / 4},{'xy'[n % 2]}\n" for n in range(40)))
    settings = ("data.train=table.csv", "data.source=a,b", "data.target=kind", "data.source_type=numbers")
    out, _, code = typed("data", "classify", *settings)
    assert code == 0 and "source (a, b): 1 × 2 numbers: 1 0.25" in out


def test_training_shows_them_first(typed, tmp_path):
    write_reviews(tmp_path / "reviews.csv")
    out, _, code = typed("train", "classify", *SETTINGS, "train.steps=2", "model.size=8", "--into", "run", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    texts = [record.get("text", "") for record in records]
    first = next(place for place, record in enumerate(records) if record["kind"] != "note")
    assert code == 0 and any("read as" in text for text in texts[:first])


def test_parallel_files_of_any_name_have_no_columns(typed, tmp_path):
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("".join(f"word {number}\n" for number in range(30)))
    out, _, code = typed("data", "translate", "data.train=train.en,train.de", "--json")
    assert code == 0 and json.loads(out)["columns"] == {}


def test_columns_that_nobody_named_are_asked_for_by_number(typed, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\tword {n}\tCC-BY\n" for n in range(30)))
    _, err, code = typed("data", "seq2seq", "data.train=pairs.tsv")
    assert code == 2 and "there are '0', 'word 0', 'CC-BY'; data.source=1 data.target=2 choose columns" in err
    out, _, code = typed("data", "seq2seq", "data.train=pairs.tsv", "data.source=1", "data.target=2")
    assert code == 0 and "CC-BY" not in out


def test_words_and_tags_are_shown_with_blanks_between_them(typed, tmp_path):
    (tmp_path / "words.conll").write_text("".join(f"the O\nman{n} B-X\n\n" for n in range(30)))
    out, _, code = typed("data", "tag", "data.train=words.conll")
    assert code == 0 and "source: the man0\n" in out and "target: O B-X\n" in out and "\\t" not in out


def write_photos(folder):
    for label, shade in {"pos": 200, "neg": 40}.items():
        (folder / label).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (9, 8), (shade, number, 0)).save(folder / label / f"{number}.png")
    (folder / "pos" / "Thumbs.db").write_bytes(b"\0junk")
    (folder / "neg" / ".DS_Store").write_bytes(b"\0junk")


def test_what_lies_between_photos_is_not_read_and_said(typed, tmp_path):
    write_photos(tmp_path / "photos")
    out, _, code = typed("data", "classify", "data.train=photos", "data.source_type=image", "data.image_size=8")
    assert code == 0 and "12 rows read" in out
    assert "photos: not read, by their endings: 1 file, such as pos/Thumbs.db" in out


def test_a_folder_of_photos_read_as_texts_says_the_setting_that_reads_them(typed, tmp_path):
    write_photos(tmp_path / "photos")
    _, err, code = typed("data", "classify", "data.train=photos")
    assert code == 2 and err == "error: photos: the files are images: data.source_type=image reads images\n"


def test_folders_of_training_and_test_are_not_taken_for_classes(typed, tmp_path):
    for part in ("train", "test"):
        for label in ("pos", "neg"):
            (tmp_path / "aclImdb" / part / label).mkdir(parents=True)
            for number in range(12):
                (tmp_path / "aclImdb" / part / label / f"{number}.txt").write_text(f"a {label} film {number}")
        (tmp_path / "aclImdb" / part / "labeledBow.feat").write_text("9 0:9\n")
    _, err, code = typed("data", "classify", "data.train=aclImdb")
    settings = ["data.train=aclImdb/train", "data.test=aclImdb/test"]
    assert (
        code == 2 and err == f"error: aclImdb: its folders are parts of the data, not classes: {' '.join(settings)}\n"
    )
    out, _, code = typed("data", "classify", *settings)
    assert code == 0 and "test: 24 examples" in out


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "t.csv",
            "Text;Team\na;b\nc;d\n",
            "data.source=1 data.target=2 choose columns, by number or by name",
        ),
        (
            "t.csv",
            "source,Team\na,b\nc,d\n",
            "data.target=COLUMN says which one is meant",
        ),
        ("t.jsonl", '{"a": {"b": "x"}, "c": "y"}\n', "data.source=KEY data.target=KEY say which are meant"),
    ],
)
def test_columns_that_nobody_named_are_asked_for(typed, tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    _, err, code = typed("data", "classify", f"data.train={name}")
    assert code == 2 and err.endswith(f"; {sentence}\n")


def test_the_column_of_times_is_asked_for(typed, tmp_path):
    (tmp_path / "s.csv").write_text("Zeit,v\n2024-01-01,1\n2024-01-02,2\n")
    _, err, code = typed("data", "forecast", "data.train=s.csv")
    assert code == 2 and "data.time=COLUMN says which one has the times" in err


def test_nearly_equal_sentences_are_warned_about_without_a_column_that_no_such_file_has(typed, tmp_path):
    with open(tmp_path / "tags.conll", "w") as file:
        for number in range(60):
            for word in f"the quick brown fox jumps over the lazy dog again and again n{number}".split():
                print(word, "N" if len(word) > 3 else "O", file=file)
            print(file=file)
    out, _, code = typed("data", "tag", "data.train=tags.conll")
    told = " ".join(out.split())
    assert code == 0 and "nearly the same as one of training, such as 'the quick brown fox" in told
    assert "data.group" not in told and "data.test names a file of others" in told
