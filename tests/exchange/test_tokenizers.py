"""Tokenizers of folders: the ids are those of transformers' AutoTokenizer, or of a search over all cuts."""

import itertools
import json

import pytest
import torch

from seqloom.errors import RunError
from seqloom.exchange import huggingface
from seqloom.exchange.huggingface.tokenizer import read_tokenizer

from .theirs import transformers, write

TEXTS = [
    "",
    "The penguin is a flightless bird.",
    "THE  Penguin's café — naïve, 北京 and 3.14 😀\n\tend ",
    "a [MASK] here <mask> there [SEP] </s> <|endoftext|>",
    " leading and trailing blanks  ",
    "unaffable " * 7,
]
WORDS = ["the", "penguin", "is", "a", "flight", "##less", "bird", ".", "un", "##aff", "##able", "and", "here", "there"]
WORDS += ["cafe", "naive", "end", "3", "14", *"'s[]<>/|"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpieces():
    letters = [chr(code) for code in range(97, 123)]
    return list(dict.fromkeys([*SPECIAL, *WORDS, *letters, *("##" + one for one in letters), "T", "P", "M"]))


def byte_pairs(special):
    """A vocabulary and merges, learned from the texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, initial_alphabet=sorted(alphabet), show_progress=False
    )
    library.train_from_iterator(TEXTS[1:], trainer)
    made = json.loads(library.to_str())["model"]
    return made["vocab"], made["merges"]


def bert(folder, **options):
    vocabulary = {piece: number for number, piece in enumerate(wordpieces())}
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in wordpieces()))
    return transformers.BertTokenizer(vocab=vocabulary, **options)


def gpt2(folder, **options):
    vocabulary, merges = byte_pairs(["<|endoftext|>"])
    write_pairs(folder, vocabulary, merges)
    return transformers.GPT2Tokenizer(vocab=vocabulary, merges=[tuple(one) for one in merges], **options)


def roberta(folder, **options):
    vocabulary, merges = byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    write_pairs(folder, vocabulary, merges)
    return transformers.RobertaTokenizer(vocab=vocabulary, merges=[tuple(one) for one in merges], **options)


def write_pairs(folder, vocabulary, merges):
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{' '.join(one)}\n" for one in merges))


MADE = {
    "bert": (bert, {}),
    "bert-cased": (bert, {"do_lower_case": False}),
    "distilbert": (bert, {}),
    "gpt2": (gpt2, {}),
    "gpt2-space": (gpt2, {"add_prefix_space": True}),
    "roberta": (roberta, {}),
    "roberta-mask": (roberta, {"mask_token": transformers.AddedToken("<mask>", lstrip=True, special=True)}),
}


def write_folder(kind, folder):
    """A folder with a model, a tokenizer as transformers writes it, and as it was written before."""
    make, options = MADE[kind]
    folder.mkdir(parents=True, exist_ok=True)
    theirs = make(folder, **options)
    write(kind.partition("-")[0], folder, vocab_size=400)
    theirs.save_pretrained(folder)
    if "mask_token" in options:  # of which this library's newest version keeps only the name
        said = json.loads((folder / "tokenizer_config.json").read_text())
        said["mask_token"] = {"__type": "AddedToken", **options["mask_token"].__getstate__()}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))


@pytest.mark.parametrize("kind", MADE)
def test_ids_are_those_of_auto_tokenizer(kind, tmp_path):
    write_folder(kind, tmp_path)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), huggingface.load(tmp_path).tokenizer
    assert (tmp_path / "tokenizer.json").exists()
    for text in TEXTS:
        assert ours.encode(text) == theirs(text)["input_ids"], text
        assert ours.decode(ours.encode(text)) == theirs.decode(
            theirs(text)["input_ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    for first, second in itertools.pairwise(TEXTS[1:]):
        said = theirs(first, second, return_token_type_ids=True)
        ids, segments = ours.encode_pair(first, second)
        assert ids == said["input_ids"]
        assert segments == said["token_type_ids"]


@pytest.mark.parametrize("kind", MADE)
def test_the_files_that_came_before_give_the_same_ids(kind, tmp_path):
    write_folder(kind, tmp_path)
    whole = read_tokenizer(tmp_path, kind.partition("-")[0])
    (tmp_path / "tokenizer.json").unlink()
    old = read_tokenizer(tmp_path, kind.partition("-")[0])
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert old.place.name != "tokenizer.json" == whole.place.name
    for text in TEXTS:
        assert old.encode(text) == whole.encode(text) == theirs(text)["input_ids"], text
        assert old.decode(old.encode(text), special=True) == whole.decode(whole.encode(text), special=True)
    assert old.encode_pair(*TEXTS[1:3]) == whole.encode_pair(*TEXTS[1:3])


def test_a_tokenizer_goes_with_its_model(tmp_path):
    write_folder("bert", tmp_path / "theirs")
    model = huggingface.load(tmp_path / "theirs")
    huggingface.save(model, tmp_path / "ours")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert [again(text)["input_ids"] for text in TEXTS] == [model.tokenizer.encode(text) for text in TEXTS]
    with torch.no_grad():
        assert model.logits(torch.tensor([again(TEXTS[1])["input_ids"]])).shape[-1] == 400


# --- SentencePiece ------------------------------------------------------------------------------------------------

PIECES = {"▁a": -1.5, "▁": -3.0, "a": -2.0, "b": -2.5, "ab": -2.2, "ba": -3.9, "▁ab": -4.0, "bab": -6.0, "c": -9.0}


def write_spm(folder, model_type=1, ids=None, side="source", pieces=PIECES):
    """By the protocol buffer that transformers carries; theirs itself needs a package to read it."""
    from transformers.utils import sentencepiece_model_pb2_new as proto

    made = proto.ModelProto()
    for piece, score, kind in [("<unk>", 0.0, 2), ("</s>", 0.0, 3), *((p, s, 1) for p, s in pieces.items())]:
        made.pieces.add(piece=piece, score=score, type=kind)
    made.trainer_spec.model_type = model_type
    made.trainer_spec.vocab_size = len(made.pieces)
    made.normalizer_spec.name = "identity"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{side}.spm").write_bytes(made.SerializeToString())
    known = ids or {"</s>": 0, "<unk>": 1, ">>de<<": 2, **{p: n + 3 for n, p in enumerate(PIECES)}, "<pad>": 20}
    (folder / "vocab.json").write_text(json.dumps(known))
    return known


def best_cut(text):
    """The pieces of the cut with the highest sum of scores, of all there are."""
    cuts = []
    for count in range(len(text)):
        for places in itertools.combinations(range(1, len(text)), count):
            parts = [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]
            if all(part in PIECES for part in parts):
                cuts.append((sum(PIECES[part] for part in parts), parts))
    return max(cuts)[1]


@pytest.mark.parametrize("text", ["a", "ab", "abab", "babab", "a ba bab", "  ab   ab ", "bbaab", "cab a"])
def test_marian_cuts_as_the_scores_say(text, tmp_path):
    ids = write_spm(tmp_path)
    ours = read_tokenizer(tmp_path, "marian")
    clean = "".join("▁" + word for word in text.split())
    assert ours.encode(text) == [*(ids[piece] for piece in best_cut(clean)), ids["</s>"]]
    assert ours.decode(ours.encode(text)) == " ".join(text.split())


def test_marian_knows_languages_and_what_it_does_not_know(tmp_path):
    ids = write_spm(tmp_path)
    ours = read_tokenizer(tmp_path, "marian")
    assert ours.encode(">>de<< a") == [ids[">>de<<"], ids["▁a"], ids["</s>"]]
    assert ours.encode("a xyz a") == [*map(ids.__getitem__, ["▁a", "▁", "<unk>", "▁a", "</s>"])]
    assert ours.decode([ids["▁a"], ids["</s>"]], special=True) == "a </s>"
    with pytest.raises(RunError, match="reads one text"):
        ours.encode_pair("a", "b")


@pytest.mark.parametrize("length", [0, 1, 3, 10, 40])
def test_a_sentencepiece_model_that_is_cut_short_or_of_another_kind_is_refused(length, tmp_path):
    write_spm(tmp_path, model_type=2)
    with pytest.raises(RunError, match="only unigram models are read"):
        read_tokenizer(tmp_path, "marian")
    data = (tmp_path / "source.spm").read_bytes()
    (tmp_path / "source.spm").write_bytes(data[: len(data) - 1 - length] if length else b"\xff" * 20)
    with pytest.raises(RunError, match="not a SentencePiece model|only unigram"):
        read_tokenizer(tmp_path, "marian")


def test_a_tokenizer_of_an_unknown_kind_is_refused(tmp_path):
    (tmp_path / "spiece.model").write_bytes(b"")
    with pytest.raises(RunError, match="spiece.model: is a tokenizer that is not read here"):
        read_tokenizer(tmp_path, "marian")
    assert read_tokenizer(tmp_path / "nothing", "bert") is None
