"""What people have at hand is what it is: images, lists of tags and labels, frames of numbers, sentences in columns."""

import csv
import json

import numpy as np
import pandas
import PIL.Image as pillow
import pytest

from seqloom.config.recipe import Recipe
from seqloom.errors import DataError
from seqloom.runs.run import load, train

from ..preparing import prepare_task

TINY = ("model.size=8", "train.batch_tokens=512", "train.steps=2", "train.validate_every=2")


def trained(folder, task, examples, *settings):
    list(train(Recipe.read(task, *TINY, *settings), folder / "run", examples=examples))
    return load(folder / "run")


def photo(number, size=(20, 30), colors=3):
    shape = (*size, colors) if colors else size
    return np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)


# --- images -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captioner(tmp_path_factory):
    """Trained on a table and the photos that it names."""
    folder = tmp_path_factory.mktemp("captions")
    for number in range(12):
        pillow.fromarray(photo(number)).save(folder / f"{number}.png")
    lines = [f"{number}.png,a {'cat' if number % 2 else 'dog'}" for number in range(12)]
    (folder / "captions.csv").write_text("file,caption\n" + "\n".join(lines) + "\n")
    settings = (f"data.train={folder / 'captions.csv'}", "data.format=images", "data.source=file", "data.image_size=8")
    list(train(Recipe.read("caption", *TINY, *settings, "data.target=caption"), folder / "run"))
    return folder


def test_a_captioner_is_asked_with_photos_a_folder_and_a_table_without_captions(seqloom, captioner, tmp_path):
    names = [f"{number}.png" for number in range(4)]
    for name in names:
        (tmp_path / name).write_bytes((captioner / name).read_bytes())
    run, paths = captioner / "run", [tmp_path / name for name in names]
    (tmp_path / "photos.csv").write_text("id,file\n" + "".join(f"{n},{name}\n" for n, name in enumerate(names)))
    code, said, error = seqloom("predict", run, *paths)
    assert code == 0 and len(said.splitlines()) == 4, error
    height, width = photo(0).shape[:2]
    scaled = f"4 of 4 images were cut and scaled, for example from {width} × {height} to 8 × 8 pixels"
    assert [line for line in error.splitlines() if "scaled" in line] == [f"{scaled} (data.image_size)"]
    assert seqloom("predict", run, "--file", tmp_path)[1] == said
    assert seqloom("predict", run, "--file", tmp_path / "photos.csv")[1] == said
    code, *_ = seqloom("predict", run, "--file", tmp_path / "photos.csv", "--out", tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert code == 0 and [row["file"] for row in found] == names and [row["id"] for row in found] == list("0123")
    assert [row["prediction"] for row in found] == said.splitlines()
    # As training has cut and resized them: the model sees the same numbers.
    loaded, [(raw, _), *_] = load(run), load(run).task.shape.read_files([str(captioner / "captions.csv")])
    for given in (paths[0], str(paths[0]), pillow.open(paths[0]), photo(0), photo(0) / 255):
        assert (loaded.task.shape.accept_input(given) == raw).all()
    assert [best.output for best, *_ in loaded.predict(list(map(photo, range(4))))] == said.splitlines()


def test_what_is_no_image_is_one_sentence_and_may_be_skipped(seqloom, captioner, tmp_path):
    run = captioner / "run"
    (tmp_path / "bad.png").write_text("this is no image")
    for given in (tmp_path / "bad.png", tmp_path / "none.png"):
        code, said, error = seqloom("predict", run, given)
        assert code == 2 and not said and len(error.splitlines()) == 1 and "image" in error
        assert error.startswith(f"error: {given}: ") and "line 1" not in error  # an image has no lines
    (tmp_path / "in.csv").write_text(f"file\nbad.png\nnone.png\n../x.png\n{captioner / '1.png'}\n")
    (tmp_path / "1.png").write_bytes((captioner / "1.png").read_bytes())
    with open(tmp_path / "in.csv", "a") as file:
        file.write("1.png\n")
    code, said, notes = seqloom("predict", run, "--file", tmp_path / "in.csv", "--on-bad-row", "skip")
    assert code == 0 and len(said.splitlines()) == 1 and "4 of 5 inputs skipped" in notes


@pytest.mark.parametrize(
    "make",
    [
        lambda number: photo(number, (8, 8), 0),
        lambda number: photo(number, (8, 8)) / 255,
        lambda number: pillow.fromarray(photo(number, (8, 8))),
    ],
    ids=["bytes, no color axis", "fractions", "Pillow"],
)
def test_images_from_python_train_a_classifier_and_ask_it_in_any_size(tmp_path, make):
    examples = [(make(number), "odd" if number % 2 else "even") for number in range(20)]
    run = trained(tmp_path, "classify", examples, "data.source_type=image", "model.patch=4")
    assert 0.3 < float(np.mean(run.task.source.mean)) < 0.7  # fractions were not cut to 0
    pillow.fromarray(photo(1)).save(tmp_path / "one.jpg")
    several = [photo(1), photo(1, (5, 9), 0), pillow.fromarray(photo(1)), tmp_path / "one.jpg", photo(2) / 255]
    for given in several:
        assert run.predict(given)[0].output in run.classes
    assert run.predict_proba(several).shape == (5, 2)
    stacked = np.stack([photo(number, (8, 8), len(run.task.source)) for number in range(3)])
    assert len(run.predict(stacked)) == 3
    with pytest.raises(DataError, match="an image was expected"):
        run.predict(np.zeros(5))
    with pytest.raises(DataError, match="no such image file"):
        run.predict("nowhere.png")


def test_images_of_several_sizes_from_python_are_resized_as_files_are(tmp_path):
    sizes = [(8, 8), (20, 31), (9, 5)]
    examples = [(pillow.fromarray(photo(n, sizes[n % 3])), "odd" if n % 2 else "even") for n in range(20)]
    run = trained(tmp_path, "classify", examples, "data.source_type=image", "data.image_size=12", "model.patch=4")
    assert run.task.source.shape == (12, 12, 3)
    notes = json.loads((run.folder / "data.json").read_text())["report"]["notes"]
    assert notes == ["20 of 20 images were cut and scaled, for example from 8 × 8 to 12 × 12 pixels (data.image_size)"]


# --- sounds -------------------------------------------------------------------------------------------------------


def test_sounds_from_python_train_a_writer_that_answers_arrays_files_tables_and_folders(seqloom, tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="the extra sound is not installed")
    sounds = [0.5 * np.sin(np.arange(500 + 100 * n) * (0.3 + 0.9 * (n % 2))).astype(np.float32) for n in range(12)]
    examples = [(sound, "high" if n % 2 else "low") for n, sound in enumerate(sounds)]
    run = trained(tmp_path, "seq2seq", examples, "data.source_type=sound", "data.sample_rate=8000", "data.mel_bands=8")
    (tmp_path / "some").mkdir()
    for number in range(3):
        soundfile.write(tmp_path / "some" / f"{number}.flac", sounds[number], 8000, subtype="PCM_24")
    first, *_ = files = [tmp_path / "some" / f"{number}.flac" for number in range(3)]
    np.testing.assert_allclose(run.task.shape.accept_input(first), run.task.shape.accept_input(sounds[0]), atol=1e-3)
    frames = run.task.shape.accept_input(sounds[0])
    assert run.predict(frames)[0].score == pytest.approx(run.predict(sounds[0])[0].score)
    several = (files, sounds[:3], tmp_path / "some", np.stack([frames] * 3))
    assert [len(run.predict(given)) for given in several] == [3] * 4
    code, said, error = seqloom("predict", tmp_path / "run", *files)
    assert code == 0 and len(said.splitlines()) == 3, error
    assert seqloom("predict", tmp_path / "run", "--file", tmp_path / "some")[1] == said
    (tmp_path / "some" / "t.csv").write_text("id,source\n1,0.flac\n2,1.flac\n3,2.flac\n")
    assert seqloom("predict", tmp_path / "run", "--file", tmp_path / "some" / "t.csv")[1] == said
    wrong = {"no sound file": "nowhere.wav", "5 bands": np.zeros((3, 5)), "-1 and 1": np.full(9, 2.0)}
    for sentence, given in wrong.items():
        with pytest.raises(DataError, match=sentence):
            run.predict(given)


def test_paths_of_sound_files_from_python_are_the_frames_of_the_files(tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="the extra sound is not installed")
    sounds = [0.5 * np.sin(np.arange(600 + 100 * n) * (0.3 + 0.9 * (n % 2))).astype(np.float32) for n in range(4)]
    paths = [tmp_path / f"{number}.flac" for number in range(4)]
    for path, sound in zip(paths, sounds, strict=True):
        soundfile.write(path, np.stack([sound, sound], 1), 8000, subtype="PCM_24")
    settings = ("data.source_type=sound", "data.sample_rate=8000", "data.mel_bands=8", "data.on_bad_row=skip")
    recipe = Recipe.of({"task": "seq2seq"}).override(*settings, f"data.sounds={tmp_path}")
    found = []
    for sources in (sounds, paths, [path.name for path in paths]):
        rows = {part: [*zip(sources, "abab", strict=True)] for part in ("train", "validation", "test")}
        _, prepared = prepare_task(recipe, note=str, examples=rows)
        found.append([np.asarray(prepared.splits["train"].ids["source"][row]) for row in range(4)])
        assert (sources is sounds) != any("2 channels are read as their mean" in note for note in prepared.report.notes)
    for frames in found[1:]:
        for one, other in zip(frames, found[0], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-2)
    with pytest.raises(DataError, match="example 1 of train: there is no sound file 'nowhere.wav' in"):
        prepare_task(recipe.override("data.on_bad_row=error"), examples=[(paths[0], "a"), ("nowhere.wav", "b")])


# --- tags, labels, numbers, texts ----------------------------------------------------------------------------------


def test_lists_of_words_and_tags_are_what_they_are(tmp_path):
    examples = [(["New York", "sleeps"], ["PLACE", "O"]), (["dogs"], ["O"])] * 20
    run = trained(tmp_path, "tag", examples)
    assert set(run.task.target.names) == {"PLACE", "O"} and "New York" in run.task.source.symbols
    [[first], [second]] = run.predict([["New York", "sleeps"], ["dogs"]])
    assert (first.words, len(first.tags), second.words) == (["New York", "sleeps"], 2, ["dogs"])


@pytest.mark.parametrize("kind", [list, tuple, set])
def test_lists_of_labels_are_what_they_are(tmp_path, kind):
    examples = [("good film", kind(["fun", "long"])), ("bad film", kind(["long"])), ("so so", kind([]))] * 20
    run = trained(tmp_path, "classify", examples, "data.target_type=labels")
    assert set(run.classes) == {"fun", "long"}
    [probabilities] = run.predict_proba("good film")
    assert [run.predict("good film")[0].probabilities[name] for name in run.classes] == pytest.approx(probabilities)


def test_a_sentence_file_is_asked_for_its_words_whether_it_has_tags_or_not(seqloom, tmp_path):
    trained(tmp_path, "tag", [(["a", "b"], ["X", "Y"]), (["b"], ["Y"])] * 20)
    (tmp_path / "tagged.conll").write_text("a X\nb Y\n\nb Y\n")
    (tmp_path / "words.conll").write_text("a\nb\n\nb\n")
    answers = [
        seqloom("predict", tmp_path / "run", "--file", tmp_path / f"{name}.conll", "--json")[1]
        for name in ("tagged", "words")
    ]
    found = [[json.loads(line) for line in text.splitlines()] for text in answers]
    assert found[0] == found[1] and [one["input"] for one in found[0]] == ["a b", "b"]
    assert [one["predictions"][0]["words"] for one in found[0]] == [["a", "b"], ["b"]]


def test_frames_and_lists_of_numbers_are_sequences(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(60, 2))
    frame = pandas.DataFrame(numbers, columns=["a", "b"])
    frame["clip"] = np.arange(60) // 3
    frame["act"] = np.where(frame["clip"] % 2, "walk", "run")
    settings = ("data.source_type=numbers", "data.source=a,b", "data.target=act")
    run = trained(tmp_path / "rows", "classify", frame, *settings)
    assert run.predict_proba(frame).shape == (60, 2)
    assert np.allclose(run.predict_proba(frame)[5], run.predict_proba(numbers[5:6])[0])
    run = trained(tmp_path / "clips", "classify", frame, *settings, "data.series=clip")
    assert np.allclose(run.predict_proba(frame)[1], run.predict_proba(numbers[3:6])[0])
    frame.to_csv(tmp_path / "clips.csv", index=False)
    assert np.allclose(run.predict_proba(tmp_path / "clips.csv"), run.predict_proba(frame), atol=1e-6)
    frame.loc[3, "act"] = "sits"
    with pytest.raises(DataError, match="changes in row 3"):
        trained(tmp_path / "broken", "classify", frame, *settings, "data.series=clip")
    run = trained(tmp_path / "lists", "classify", [([1, 2, 3.5], "u"), ([2, 3], "v")] * 20, "data.source_type=numbers")
    assert run.predict([1, 2, 3])[0].output in ("u", "v")


def test_a_list_of_texts_is_scored_as_documents_and_one_text_as_one(tmp_path):
    several = trained(tmp_path / "several", "language", ["abc abc", "bcd", "aaa"] * 20)
    alone = trained(tmp_path / "alone", "language", ["abc abc " * 60])
    assert not several.task.shape.one_text and alone.task.shape.one_text
    encoded = several.task.shape.encode([("abc",), ("bc",)])
    losses = several.task.shape.losses(several.model, encoded)
    apart = [several.task.shape.losses(several.model, several.task.shape.encode([(text,)])) for text in ("abc", "bc")]
    assert losses == pytest.approx(np.concatenate(apart), abs=1e-6)  # each from its own beginning, with its end


def test_a_fraction_may_begin_with_its_point():
    assert Recipe.read("classify", "model.dropout=.3").model.dropout == 0.3
