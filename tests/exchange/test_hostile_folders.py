"""Folders that are not what they should be: one sentence each, and nothing in them is run or followed."""

import json
import os
import pickle
import shutil
import struct

import pytest
import safetensors.torch
import torch

from seqloom.errors import DataError, RunError, SeqloomError
from seqloom.exchange import huggingface

from .theirs import draw_ids, write

close = torch.testing.assert_close


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "bert"
    write("bert", folder)
    return folder


@pytest.fixture
def folder(good, tmp_path):
    """A copy to spoil, beside a canary that nothing may touch."""
    return shutil.copytree(good, tmp_path / "model")


@pytest.fixture(autouse=True)
def canary(tmp_path):
    mark = tmp_path / "touched"
    yield mark
    assert not mark.exists(), "code from the folder was run"


def change_json(path, **said):
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **said}))


def change_weights(folder, change, into="model.safetensors"):
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    changed = change(dict(tensors))
    safetensors.torch.save_file(
        {k: v.contiguous() for k, v in changed.items()}, folder / into, metadata={"format": "pt"}
    )


def shard(folder, count=3):
    """As transformers shards large models."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {}
    for number in range(count):
        part = {name: tensor for at, (name, tensor) in enumerate(sorted(tensors.items())) if at % count == number}
        file = f"model-{number + 1:05}-of-{count:05}.safetensors"
        safetensors.torch.save_file(part, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(part, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return index, places


def refuse(folder, match):
    with pytest.raises(SeqloomError, match=match) as caught:
        huggingface.load(folder)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


@torch.no_grad()
def test_shards_are_the_same_model(good, folder):
    shard(folder)
    ids = draw_ids(2, 6)
    close(huggingface.load(folder).logits(ids), huggingface.load(good).logits(ids))


@torch.no_grad()
def test_their_own_shards_are_read(tmp_path):
    theirs = write("gpt2", tmp_path / "whole")
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    ids = draw_ids(2, 6)
    close(huggingface.load(tmp_path / "shards").logits(ids), theirs(input_ids=ids).logits, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_old_names_old_masks_copies_and_half_precision_are_accounted_for(good, folder, tmp_path):
    def change(tensors):
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
            for name, tensor in tensors.items()
        }
        words = tensors["bert.embeddings.word_embeddings.weight"]
        return renamed | {
            "bert.embeddings.position_ids": torch.arange(20)[None],
            "cls.predictions.decoder.weight": words.clone(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
            "bert.pooler.dense.weight": torch.randn(24, 24),
            "bert.pooler.dense.bias": torch.randn(24),
            "cls.seq_relationship.weight": torch.randn(2, 24),
            "cls.seq_relationship.bias": torch.randn(2),
        }

    change_weights(folder, change)
    ids, whole, old = draw_ids(2, 6), huggingface.load(good), huggingface.load(folder)
    close(old.logits(ids), whole.logits(ids))
    assert old.extras == {"pooler", "next_sentence"} and old.next_sentence_logits(ids).shape == (2, 2)
    huggingface.save(old, tmp_path / "again")
    close(huggingface.load(tmp_path / "again").next_sentence_logits(ids), old.next_sentence_logits(ids))
    change_weights(good, lambda tensors: {name: tensor.half() for name, tensor in tensors.items()}, tmp_path / "half")
    shutil.copy(tmp_path / "half", folder / "model.safetensors")
    found = huggingface.load(folder)
    assert {parameter.dtype for parameter in found.parameters()} == {torch.float32}
    close(found.logits(ids), whole.logits(ids), atol=0.05, rtol=0.05)


@torch.no_grad()
def test_a_gpt2_folder_of_old_has_no_prefix_and_holds_its_masks(tmp_path):
    theirs = write("gpt2", tmp_path)
    masks = {f"h.{n}.attn.bias": torch.ones(40, 40).tril()[None, None] for n in range(2)}
    numbers = {f"h.{n}.attn.masked_bias": torch.tensor(-1e4) for n in range(2)}
    change_weights(tmp_path, lambda old: {k.removeprefix("transformer."): v for k, v in old.items()} | masks | numbers)
    ids = draw_ids(2, 6)
    close(huggingface.load(tmp_path).logits(ids), theirs(input_ids=ids).logits, atol=1e-4, rtol=1e-4)
    change_weights(tmp_path, lambda old: old | {"h.1.attn.bias": torch.ones(1, 1, 40, 40)})
    refuse(tmp_path, "'transformer.h.1.attn.bias' is not what such a model computes")


# --- weights ------------------------------------------------------------------------------------------------------

WORDS, QUERY = "bert.embeddings.word_embeddings.weight", "bert.encoder.layer.1.attention.self.query.weight"
SPOILED = {
    "missing": (lambda old: {k: v for k, v in old.items() if k != QUERY}, f"the weight '{QUERY}' is missing"),
    "left over": (lambda old: old | {"bert.encoder.layer.2.output.dense.bias": torch.zeros(24)}, "is left over"),
    "a foreign name": (lambda old: old | {"adapter.up": torch.zeros(24)}, "'bert.adapter.up' is left over"),
    "a shape": (lambda old: old | {WORDS: torch.zeros(51, 24)}, "51 × 24, but by config.json it is 50 × 24"),
    "turned around": (
        lambda old: old | {QUERY: torch.zeros(24, 23)},
        "of shapes that do not fit together",
    ),
    "no dimension": (lambda old: old | {QUERY: torch.tensor(1.0)}, "of shapes that do not fit together"),
    "not a number": (lambda old: old | {WORDS: torch.full((50, 24), torch.nan)}, "not finite numbers"),
    "infinite": (lambda old: old | {WORDS: torch.full((50, 24), torch.inf)}, "not finite numbers"),
    "a copy that differs": (
        lambda old: old | {"cls.predictions.decoder.weight": torch.zeros(50, 24)},
        "is not 'bert.embeddings.word_embeddings.weight', though config.json ties them",
    ),
    "two names": (
        lambda old: old | {WORDS.removeprefix("bert."): torch.zeros(50, 24)},
        "under two names",
    ),
    "integers": (lambda old: old | {WORDS: torch.zeros(50, 24, dtype=torch.int64)}, "whole numbers"),
    "nothing": (lambda old: {}, "missing"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_spoiled_weights_are_refused(name, folder):
    change, match = SPOILED[name]
    change_weights(folder, change)
    refuse(folder, match)


def test_a_name_that_stands_there_twice_is_refused(folder):
    one = '"bert.pooler.dense.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    header = ("{" + one + "," + one + "}").encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
    refuse(folder, "stands there twice")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.pkl", "tf_model.h5"])
def test_a_folder_of_pickles_is_refused_and_none_is_opened(name, folder, canary):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb(canary)))
    refuse(folder, f"holds its weights as '{name}', which may run code")


def test_a_pickle_under_a_good_name_is_refused(folder, canary):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Bomb(canary)))
    refuse(folder, "pickle or zip archive, which may hold code")
    torch.save({"a": Bomb(canary)}, folder / "model.safetensors")
    refuse(folder, "pickle or zip archive, which may hold code")


# --- shards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("escape", ["../outside.safetensors", "/etc/passwd", "sub/../../x.safetensors", "", 7, "a.bin"])
def test_a_shard_outside_of_the_folder_is_refused(escape, folder):
    shutil.copy(folder / "model.safetensors", folder.parent / "outside.safetensors")
    index, places = shard(folder)
    index.write_text(json.dumps({"weight_map": {**places, WORDS: escape}}))
    refuse(folder, "but a shard is a .safetensors file of this folder")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_link_is_not_followed(name, folder):
    (folder / name).exists() and shutil.move(folder / name, folder.parent / name)
    (folder.parent / name).touch()
    (folder / name).symlink_to(folder.parent / name)
    refuse(folder, "is a link, which is not followed")


def test_a_shard_that_is_a_link_is_not_followed(folder):
    _, places = shard(folder)
    file = folder / places[WORDS]
    shutil.move(file, folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")
    refuse(folder, "is a link, which is not followed")


def test_an_index_that_does_not_agree_with_its_shards_is_refused(folder):
    index, places = shard(folder)
    others = sorted(set(places.values()) - {places[WORDS]})
    for changed, match in (
        ({**places, WORDS: others[0]}, "does not say"),
        ({name: file for name, file in places.items() if name != WORDS}, "does not say"),
        ({**places, "ghost": others[0]}, "'ghost' is listed"),
        ({**places, WORDS: "not-there.safetensors"}, "is missing"),
        ([], "has no weight_map"),
    ):
        index.write_text(json.dumps({"weight_map": changed}))
        refuse(folder, match)
    index.write_text('{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}')
    refuse(folder, "stands there twice")


def test_a_weight_in_two_shards_is_refused(folder):
    _, places = shard(folder)
    other = next(file for file in places.values() if file != places[WORDS])
    tensors = safetensors.torch.load_file(folder / other)
    safetensors.torch.save_file(tensors | {WORDS: torch.zeros(50, 24)}, folder / other)
    refuse(folder, "a second time|does not say")


# --- config.json --------------------------------------------------------------------------------------------------

CONFIGS = {
    "code": ({"auto_map": {"AutoModel": "evil.Model"}}, "asks for 'auto_map'"),
    "trust": ({"trust_remote_code": True}, "asks for 'trust_remote_code'"),
    "another format": ({"quantization_config": {"bits": 4}}, "asks for 'quantization_config'"),
    "a family": ({"model_type": "llama"}, "'model_type' is 'llama', but it can be bert, distilbert, roberta"),
    "no family": ({"model_type": None}, "'model_type' is None"),
    "a list as family": ({"model_type": ["bert"]}, "'model_type' is"),
    "an architecture": ({"architectures": ["BertForQuestionAnswering"]}, "'architectures' is"),
    "another family's": ({"architectures": ["GPT2LMHeadModel"]}, "'architectures' is"),
    "no architecture": ({"architectures": None}, "'architectures' is None"),
    "architectures that are none": ({"architectures": [{"a": 1}]}, "'architectures' is"),
    "too large": ({"hidden_size": 10**12}, "'hidden_size' is 1000000000000"),
    "terabytes": ({"hidden_size": 3 << 20, "vocab_size": 1 << 24}, "but by config.json it is 16777216 × 3145728"),
    "deep": ({"num_hidden_layers": 999}, "missing"),
    "too deep": ({"num_hidden_layers": 10**9}, "'num_hidden_layers' is 1000000000"),
    "negative": ({"num_hidden_layers": -1}, "'num_hidden_layers' is -1"),
    "a text": ({"hidden_size": "24"}, "'hidden_size' is the text '24'"),
    "heads": ({"num_attention_heads": 5}, "24 features cannot be shared out evenly among 5 heads"),
    "activation": ({"hidden_act": "os.system"}, "'hidden_act' is the text 'os.system'"),
    "decoder": ({"is_decoder": True}, "'is_decoder' is True"),
    "cross": ({"add_cross_attention": True}, "'add_cross_attention' is True"),
    "relative": ({"position_embedding_type": "relative_key"}, "'position_embedding_type' is"),
    "untied": ({"tie_word_embeddings": False}, "'tie_word_embeddings' is False"),
    "pruned": ({"pruned_heads": {"0": [1]}}, "'pruned_heads' is"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_configuration_that_cannot_be_met_is_refused(name, folder):
    said, match = CONFIGS[name]
    change_json(folder / "config.json", **said)
    refuse(folder, match)


def test_code_beside_the_configuration_is_not_run(folder, canary):
    (folder / "modeling_bert.py").write_text(f"import os; os.mkdir({str(canary)!r})")
    (folder / "__init__.py").write_text(f"import os; os.mkdir({str(canary)!r})")
    assert huggingface.load(folder).logits(draw_ids(1, 3)).shape == (1, 3, 50)
    change_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["modeling_bert.Tokenizer", None]})
    refuse(folder, "tokenizer_config.json: asks for 'auto_map'")


NO_JSON = {
    "nothing": "",
    "a list": "[]",
    "cut short": "{",
    "not a number": '{"a": NaN}',
    "twice": '{"a": 1, "a": 2}',
    "nested": "[" * 100_000,
    "a zero": "\x00",
    "too large": '{"a": 1e999}',
}


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_is_refused(text, folder):
    (folder / "config.json").write_text(text)
    refuse(folder, "config.json: (is|holds)")


def test_a_folder_that_is_none_is_refused(tmp_path, folder):
    refuse(tmp_path / "nowhere", "is not a folder")
    refuse(folder / "config.json", "is not a folder")
    (folder / "config.json").unlink()
    refuse(folder, "config.json: is missing")


# --- tokenizer ----------------------------------------------------------------------------------------------------


def write_tokenizer(folder, **changed):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    library = Tokenizer(models.WordLevel({"a": 5, "b": 6, "[UNK]": 1, "[CLS]": 2}, unk_token="[UNK]"))
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    library.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 2)])
    (folder / "tokenizer.json").write_text(json.dumps({**json.loads(library.to_str()), **changed}))
    return json.loads(library.to_str())


def test_ids_beyond_the_embedding_are_refused(folder):
    made = write_tokenizer(folder)
    assert huggingface.load(folder).tokenizer.encode("a b c") == [2, 5, 6, 1]
    write_tokenizer(folder, model={**made["model"], "vocab": {**made["model"]["vocab"], "z": 50}})
    refuse(folder, "the tokenizer has the id 50, but the model has vectors for 50 tokens")
    special = made["post_processor"]["special_tokens"]
    hostile = {"[CLS]": {**special["[CLS]"], "ids": [4_000_000_000]}}
    write_tokenizer(folder, post_processor={**made["post_processor"], "special_tokens": hostile})
    refuse(folder, "the tokenizer has the id 4000000000")


def test_a_tokenizer_that_cannot_be_read_or_panics_is_refused(folder, monkeypatch):
    for text in ("", "{}", '{"model": {"type": "WordPiece"}}', '{"a": 1, "a": 2}', "\x00" * 10):
        (folder / "tokenizer.json").write_text(text)
        refuse(folder, "tokenizer.json: ")
    made = write_tokenizer(folder)
    broken = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    write_tokenizer(folder, normalizer=broken)
    refuse(folder, "tokenizer.json: the tokenizer cannot be used")
    write_tokenizer(folder, post_processor={**made["post_processor"], "special_tokens": {}})
    refuse(folder, "tokenizer.json: the tokenizer cannot be used")


def test_a_panic_is_one_sentence(folder):
    """What the library raises then is no Exception; here it is made to."""
    write_tokenizer(folder)
    tokenizer = huggingface.load(folder).tokenizer

    class PanicException(BaseException):
        pass

    class Panics:
        def encode(self, *texts):
            raise PanicException("index out of bounds")

    tokenizer.library = Panics()
    with pytest.raises(RunError, match="the tokenizer cannot be used .index out of bounds"):
        tokenizer.encode("a")
    tokenizer.library.encode = lambda *texts: (_ for _ in ()).throw(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode("a")


# --- what is asked ------------------------------------------------------------------------------------------------


def test_what_the_model_cannot_read_is_refused(folder, tmp_path):
    model = huggingface.load(folder)
    for ids, options, match in (
        (torch.tensor([[50]]), {}, "the id 50 is beyond the 50 tokens"),
        (torch.tensor([[-1, 2]]), {}, "the id -1 is beyond"),
        (torch.zeros(1, 21, dtype=torch.long), {}, "21 tokens are more than the 20 positions"),
        (torch.zeros(3, dtype=torch.long), {}, "rows × at least one place, but here they are 3"),
        (torch.zeros(1, 3), {}, "ids are whole numbers"),
        (torch.zeros(2, 0, dtype=torch.long), {}, "at least one place, but here they are 2 × 0"),
        (draw_ids(1, 3), {"mask": torch.ones(1, 4)}, "the mask is 1 × 4"),
        (draw_ids(1, 3), {"segments": torch.full((1, 3), 2)}, "segments are numbers from 0 to 1"),
        (draw_ids(1, 3), {"segments": torch.zeros(1, 2).long()}, "segments are numbers from 0 to 1"),
    ):
        with pytest.raises(DataError, match=match):
            model.logits(ids, **options)
    with pytest.raises(RunError, match="no head for the next sentence"):
        model.next_sentence_logits(draw_ids(1, 3))
    write("distilbert-body", tmp_path / "body")
    body = huggingface.load(tmp_path / "body")
    with pytest.raises(RunError, match="a body without a head"):
        body.logits(draw_ids(1, 3))
    with pytest.raises(DataError, match="a distilbert has no segments"):
        body.read(draw_ids(1, 3), segments=torch.zeros(1, 3).long())
    write("marian", tmp_path / "marian")
    with pytest.raises(DataError, match="give the ids of the target so far"):
        huggingface.load(tmp_path / "marian").logits(draw_ids(1, 3))


def test_saving_replaces_nothing_and_takes_only_what_it_knows(folder, tmp_path):
    model = huggingface.load(folder)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(RunError, match="is there already, and not empty"):
        huggingface.save(model, folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    with pytest.raises(RunError, match="a Linear is not in the shape of one of these families"):
        huggingface.save(torch.nn.Linear(2, 2), tmp_path / "linear")
    assert not (tmp_path / "linear").exists()
    huggingface.save(model, tmp_path / "new" / "model")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["model"], "nothing is left behind"
    card = (tmp_path / "new" / "model" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: fill-mask") and "50 tokens" in card


def test_a_preset_or_shape_that_does_not_exist_is_refused():
    for said, architecture, match in (
        ("bert-huge", "", "there is no preset 'bert-huge', but bert-base"),
        ({"model_type": "llama"}, "", "'model_type' is 'llama'"),
        ({"model_type": "bert"}, "GPT2Model", "a bert is one of BertForMaskedLM"),
        ({"model_type": "bert", "hidden_size": 10, "num_attention_heads": 3}, "", "10 features cannot be shared"),
    ):
        with pytest.raises(RunError, match=match):
            huggingface.create(said, architecture)
