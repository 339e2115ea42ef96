"""Runs of seq2seq that start from a Marian folder, and such runs as Marian folders, against transformers."""

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.exchange import huggingface
from seqloom.exchange.huggingface.marian import interleave, separate
from seqloom.layers.positions import frequencies, sinusoids
from seqloom.runs.export import export_run
from seqloom.runs.run import load, train

from .test_tokenizers import PIECES, best_cut, write_spm
from .theirs import make, transformers

PAIRS = [("a ba", "ab"), ("bab a", "ba ba"), ("ab ab", "b"), ("cab", "a ab ba"), ("a", "bab"), ("ba c", "c a")]
PARTS = {"train": PAIRS * 4, "validation": PAIRS[:3], "test": PAIRS[:3]}
FEW = ("data.sample=", "train.steps=2", "train.batch_tokens=64", "train.validate_every=1")
LETTERS = {piece: -1.0 for piece in ("▁", "a", "b", "c")}  # the target is cut otherwise than the source
close = torch.testing.assert_close


def write_marian(folder, shared=True, **options):
    """As transformers writes it, with pieces for each side, and more rows than tokens."""
    write_spm(folder)
    write_spm(folder, side="target", pieces=LETTERS)
    sizes = {"vocab_size": 24, "decoder_vocab_size": 24, "share_encoder_decoder_embeddings": shared}
    ends = {"pad_token_id": 20, "decoder_start_token_id": 20, "bad_words_ids": [[20]]}
    theirs = make("marian", **sizes, **ends, **options)
    theirs.save_pretrained(folder)
    return theirs


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for name, shared in (("shared", True), ("separate", False)):
        made[name] = tmp_path_factory.mktemp(name)
        write_marian(made[name], shared)
    return made


def fit(folder, into, *more, task="seq2seq"):
    recipe = Recipe.read(task, f"model.from={folder}", *FEW, *more)
    list(train(recipe, into, examples=PARTS))
    return load(into)


@torch.no_grad()
def check_logits(run, theirs):
    """Of each place of some targets, for every token that both have."""
    source, target = run.task.fields["source"], run.task.target
    rows = torch.from_numpy(target.rows)
    for given, answer in PAIRS:
        read, write = (
            torch.from_numpy(field.encode(text)).long() for field, text in ((source, given), (target, answer))
        )
        before = torch.cat([torch.tensor([2]), write])[None]
        state = run.net.initial_state(1, read[None], torch.ones(1, len(read), dtype=torch.bool))
        found, _ = run.net(before, state)
        ids = torch.from_numpy(source.rows)[read][None]
        wanted = theirs(input_ids=ids, decoder_input_ids=rows[before]).logits
        known = (rows >= 0) & found[0, 0].isfinite()
        assert known.sum() == 23  # all but the start
        close(found[..., known], wanted[..., rows[known]], atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_a_marian_goes_on_translating_and_opens_in_transformers(kind, folders, tmp_path):
    still = fit(folders[kind], tmp_path / "still", "train.learning_rate=1e-12")
    check_logits(still, transformers.MarianMTModel.from_pretrained(folders[kind]).eval())
    assert (still.net.source.embed is still.net.embed) == (kind == "shared")
    moved = fit(folders[kind], tmp_path / "moved", "train.learning_rate=0.01")
    export_run(moved.folder, "huggingface", there := tmp_path / "there")
    theirs = transformers.MarianMTModel.from_pretrained(there).eval()
    check_logits(moved, theirs)
    assert not torch.equal(moved.net.embed.weight, still.net.embed.weight)
    again = fit(there, tmp_path / "again", "train.learning_rate=1e-12")
    check_logits(again, theirs)
    target = moved.task.target
    for given, _ in PAIRS:
        [best, *_] = moved.predict(given, beam=1)
        ids = torch.tensor([huggingface.load(there).tokenizer.encode(given)])
        written = theirs.generate(ids, num_beams=1, do_sample=False, max_new_tokens=8)[0, 1:].tolist()
        names = target.names(range(len(target)))
        ours = [int(target.rows[names.index(one)]) for one in best.tokens]
        assert written[: len(ours)] == ours[: len(written)]


def test_each_side_is_cut_by_its_own_pieces(folders, tmp_path):
    run = fit(folders["shared"], tmp_path / "run")
    source, target = load(run.folder).task.fields["source"], load(run.folder).task.target
    ids = {**{piece: number + 3 for number, piece in enumerate(PIECES)}, "</s>": 0}
    for field, pieces in ((source, [*best_cut("▁bab▁a"), "</s>"]), (target, [*"▁bab▁a"])):
        assert [int(field.rows[one]) for one in field.encode("bab a")] == [ids[one] for one in pieces]
        assert field.decode(field.encode("bab a")) == "bab a"
    export_run(run.folder, "huggingface", tmp_path / "there")
    for name in ("source.spm", "target.spm", "vocab.json"):
        assert (tmp_path / "there" / name).read_bytes() == (folders["shared"] / name).read_bytes()


def test_the_encoder_of_a_marian_serves_a_classifier(folders, tmp_path):
    run = fit(folders["shared"], tmp_path / "run", "train.freeze=embed,encoder", task="classify")
    theirs = transformers.MarianMTModel.from_pretrained(folders["shared"]).eval().model.encoder
    ids = torch.from_numpy(run.task.source.encode("a bab")).long()[None]
    features = run.net.encoder(run.net.embed(ids), torch.ones_like(ids, dtype=torch.bool)).values
    wanted = theirs(input_ids=torch.from_numpy(run.task.source.rows)[ids]).last_hidden_state
    close(features, torch.stack([wanted[..., :12], wanted[..., 12:]], -1).flatten(-2), atol=1e-4, rtol=0)
    with pytest.raises(RunError, match="model.embedding_norm is False, but in the shape of bert it is True"):
        export_run(run.folder, "huggingface", tmp_path / "there")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model.decoder.depth=1", r"model.decoder.depth is 1, but .*has 3: leave it out"),
        ("data.target_tokenizer=words", "data.shared wants both sides cut alike, not folder and words"),
        ("model.shared_embedding=false", r"model.shared_embedding is false, but .*has true: leave it out"),
    ],
)
def test_another_shape_or_tokenizer_beside_the_folder_is_refused(setting, says, folders):
    with pytest.raises(RecipeError, match=says):
        Recipe.read("seq2seq", "data.sample=", f"model.from={folders['shared']}", setting)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("target.spm", "has no target.spm, which cuts the texts of the target"),
        ("source.spm", "put its source.spm, target.spm and vocab.json into the folder"),
        ("vocab.json", "is read with one vocab.json for both sides"),
    ],
)
def test_a_folder_without_a_file_of_its_tokenizer_is_refused(missing, says, folders, tmp_path):
    write_marian(tmp_path / "folder")
    (tmp_path / "folder" / missing).unlink()
    with pytest.raises(RunError, match=says):
        fit(tmp_path / "folder", tmp_path / "run")


@pytest.mark.parametrize("size", [8, 9])
def test_all_sines_before_all_cosines_are_our_positions_in_their_order(size):
    angles = torch.arange(5)[:, None] * frequencies(size)
    theirs = torch.cat([angles.sin(), angles.cos()], -1)[:, :size]
    ours = sinusoids(torch.arange(5), frequencies(size), size)
    assert torch.equal(interleave(theirs), ours) and torch.equal(separate(ours), theirs)


SHAPE = (
    "model.kind=transformer", "model.size=16", "model.heads=2", "model.norm=post", "model.positions=sinusoidal",
    "model.encoder.depth=1", "model.decoder.depth=2", "model.activation=relu", "data.source_tokenizer=bpe",
    "data.target_tokenizer=bpe", "data.vocabulary_size=280",
)  # fmt: skip


@pytest.mark.parametrize("own", [("data.shared=true", "model.shared_embedding=true", "model.tied=true"), ()])
def test_an_ordinary_run_in_the_shape_of_a_marian_opens_in_transformers(own, tmp_path):
    list(train(Recipe.read("seq2seq", *SHAPE, *FEW, *own), tmp_path / "run", examples=PARTS))
    run = load(tmp_path / "run")
    export_run(run.folder, "huggingface", tmp_path / "there")
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "there").eval()
    read, write = (torch.from_numpy(one.encode("bab a")).long()[None] for one in (run.task.source, run.task.target))
    write = torch.cat([torch.tensor([[theirs.config.decoder_start_token_id]]), write], 1)
    found, _ = run.net(write, run.net.initial_state(1, read, torch.ones_like(read, dtype=torch.bool)))
    close(found[..., 3:], theirs(input_ids=read, decoder_input_ids=write).logits[..., 3:], atol=1e-5, rtol=0)


def test_a_run_in_another_shape_is_refused_with_the_side(tmp_path):
    changed = ("model.decoder.norm=pre",)
    list(train(Recipe.read("seq2seq", *SHAPE, *FEW, *changed), tmp_path / "run", examples=PARTS))
    with pytest.raises(RunError, match="model.decoder.norm is 'pre', but in the shape of marian it is 'post'"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "there")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("data.shared=false", "data.shared is false: each side has a vocabulary of its own"),
        ("data.characters=5", "words are composed of characters on each side"),
        ("model.one_hot=true", "with model.one_hot no embedding is learned"),
        ("data.tag=style", "a tag has a vector that the target does not"),
    ],
)
def test_one_embedding_needs_one_vocabulary(setting, says):
    words = ("data.source_tokenizer=words", "data.target_tokenizer=words", "data.shared=true")
    with pytest.raises(RecipeError, match=f"model.shared_embedding is true, but {says}"):
        Recipe.read("seq2seq", "data.sample=", *words, "model.shared_embedding=true", setting)
