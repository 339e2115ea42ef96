"""Runs that start from a Hugging Face folder, and runs that are written as one, against transformers."""

import json

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.exchange import huggingface
from seqloom.exchange.huggingface.runs import convert_run
from seqloom.runs.export import export_run
from seqloom.runs.run import load, train

from .test_tokenizers import bert, gpt2, roberta
from .theirs import transformers

TEXTS = ["The penguin is a flightless bird.", "a bird is here and there", "unaffable birds and penguins"]
ROWS = [(f"{TEXTS[n % 3]} {'here' if n % 2 else 'there'}", "ab"[n % 2]) for n in range(40)]
PARTS = {"train": ROWS, "validation": ROWS[:6], "test": ROWS[:6]}
LINES = {part: [(text,) for text, _ in rows] for part, rows in PARTS.items()}
FEW = ("train.steps=2", "train.batch_tokens=256", "train.validate_every=1", "train.learning_rate=0.01")
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 36}
KINDS = {
    "bert": ("BertForMaskedLM", bert, {**SIZES, "max_position_embeddings": 40}),
    "bert-pooled": ("BertModel", bert, {**SIZES, "max_position_embeddings": 40}),
    "roberta": ("RobertaForMaskedLM", roberta, {**SIZES, "max_position_embeddings": 90}),
    "distilbert": (
        "DistilBertForMaskedLM", bert, {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 36,
                                        "max_position_embeddings": 40},
    ),
    "gpt2": ("GPT2LMHeadModel", gpt2, {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 120}),
}  # fmt: skip
READERS = [kind for kind in KINDS if kind != "gpt2"]
close = torch.testing.assert_close


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each family as transformers writes it, with a tokenizer, and more rows than tokens."""
    made = {}
    for kind, (name, tokenize, sizes) in KINDS.items():
        folder = tmp_path_factory.mktemp(kind)
        tokenizer = tokenize(folder)
        ids = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("bos", "eos", "pad")}
        known = {role: number for role, number in ids.items() if number is not None}
        config = getattr(transformers, name).config_class(vocab_size=len(tokenizer) + 3, **sizes, **known)
        torch.manual_seed(0)
        getattr(transformers, name)(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        made[kind] = folder
    return made


def fit(task, folder, into, *more):
    recipe = Recipe.read(task, "data.sample=", f"model.from={folder}", *FEW, *more)
    list(train(recipe, into, examples=LINES if task in ("language", "pretrain") else PARTS))
    return load(into)


@pytest.fixture(scope="module")
def runs(folders, tmp_path_factory):
    where = tmp_path_factory.mktemp("runs")
    made = {kind: fit("classify", folders[kind], where / kind, "data.max_length=60") for kind in READERS}
    made["gpt2"] = fit("language", folders["gpt2"], where / "gpt2", "train.bptt_window=32", "data.documents=lines")
    return made


@pytest.mark.parametrize("kind", READERS)
def test_a_frozen_body_reads_as_it_did_there(kind, folders, tmp_path):
    run = fit("classify", folders[kind], tmp_path / "run", "train.freeze=embed,encoder", "data.max_length=60")
    theirs = transformers.AutoModel.from_pretrained(folders[kind]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[kind])
    for text in TEXTS:
        ids = torch.from_numpy(run.task.source.encode(text)).long()[None]
        found = run.net.encoder(run.net.embed(ids), torch.ones_like(ids, dtype=torch.bool)).values
        close(found, theirs(**tokenizer(text, return_tensors="pt")).last_hidden_state, atol=1e-5, rtol=0)


def test_the_pooler_is_the_hidden_layer_of_the_new_head(folders, tmp_path):
    run = fit("classify", folders["bert-pooled"], tmp_path / "run", "train.freeze=embed,encoder,head.hidden")
    theirs = transformers.BertModel.from_pretrained(folders["bert-pooled"])
    assert torch.equal(run.net.head.hidden[0].weight, theirs.pooler.dense.weight)
    assert (run.recipe.model.pool, run.recipe.model.hidden, run.recipe.model.hidden_activation) == ("first", 24, "tanh")


@pytest.mark.parametrize("kind", READERS)
def test_a_classifier_opens_in_transformers_with_equal_logits(kind, runs, tmp_path):
    run, folder = runs[kind], tmp_path / "there"
    export_run(run.folder, "huggingface", folder)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert list(theirs.config.id2label.values()) == list(run.classes)
    for text in TEXTS:
        ids = torch.from_numpy(run.task.source.encode(text)).long()[None]
        found = run.net(ids, torch.ones_like(ids, dtype=torch.bool))
        close(found, theirs(**tokenizer(text, return_tensors="pt")).logits, atol=1e-5, rtol=0)
    assert "seqloom" in (folder / "README.md").read_text(encoding="utf-8")


def test_gpt2_goes_on_writing_and_opens_in_transformers(runs, tmp_path):
    run, folder = runs["gpt2"], tmp_path / "there"
    assert run.net.head.project.bias is not None and not dict(run.net.head.named_parameters()).get("project.bias")
    assert run.generate("The penguin", temperature=0.0, length=5).finish()
    huggingface.save(run, folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    field = run.task.target
    known = torch.from_numpy(field.rows) >= 0
    for text in TEXTS:
        ids = torch.from_numpy(field.encode(text)).long()[None]
        found, _ = run.net(ids, run.net.initial_state(1))
        wanted = theirs(**tokenizer(text, return_tensors="pt")).logits[..., torch.from_numpy(field.rows)[known]]
        may = found[..., known].isfinite()
        close(found[..., known][may], wanted[may], atol=1e-5, rtol=0)
        assert may.float().mean() > 0.9


def test_numbers_that_no_token_has_take_no_probability(folders, tmp_path):
    """Logits of GPT-2 as it is published are far below zero, which a number without a vector would have."""
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folders["gpt2"]).eval()
    theirs.transformer.wte.weight.data += 0.5
    theirs.transformer.ln_f.bias.data -= 3.0
    theirs.save_pretrained(tmp_path / "folder")
    transformers.AutoTokenizer.from_pretrained(folders["gpt2"]).save_pretrained(tmp_path / "folder")
    still = ("train.learning_rate=1e-12", "train.bptt_window=32", "data.documents=lines")
    run = fit("language", tmp_path / "folder", tmp_path / "run", *still)
    rows = torch.from_numpy(run.task.target.rows)
    ids = torch.from_numpy(run.task.target.encode(TEXTS[0])).long()[None]
    with torch.no_grad():
        found, wanted = run.net(ids, run.net.initial_state(1))[0], theirs(rows[ids]).logits
    assert wanted.max() < -10
    close(found.log_softmax(-1)[..., rows >= 0], wanted.log_softmax(-1)[..., rows[rows >= 0]], atol=1e-4, rtol=0)


def test_gpt2_reads_for_a_classifier_as_it_did_there(folders, tmp_path):
    run = fit("classify", folders["gpt2"], tmp_path / "run", "train.freeze=embed,encoder", "data.max_length=60")
    theirs = transformers.GPT2Model.from_pretrained(folders["gpt2"]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["gpt2"])
    ids = torch.from_numpy(run.task.source.encode(TEXTS[0])).long()[None]
    summary = run.net.encoder(run.net.embed(ids), torch.ones_like(ids, dtype=torch.bool)).summary
    close(summary, theirs(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state[:, -1], atol=1e-5, rtol=0)
    with pytest.raises(RunError, match="the task classify has no counterpart in transformers that is written here"):
        convert_run(run)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_every_picture_is_drawn_and_the_run_opens_again(kind, runs):
    examples = PARTS if kind == "bert" else LINES
    pages = load(runs[kind].folder).look("a bird is here", "a" if kind == "bert" else None, examples=examples)
    assert {"attention", "attribution", "embedding", "curves", "model", "positions"} <= pages.views.keys()
    for draw in pages.views.values():
        assert draw() is not None


def test_bert_reads_for_a_translator_as_it_did_there(folders, tmp_path):
    """Which has no segments: everything is in the first."""
    run = fit("seq2seq", folders["bert"], tmp_path / "run", "train.freeze=source")
    theirs = transformers.BertModel.from_pretrained(folders["bert"]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    ids = torch.from_numpy(run.task.source.encode(TEXTS[0])).long()[None]
    found = run.net.source(ids, torch.ones_like(ids, dtype=torch.bool)).values
    close(found, theirs(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state, atol=1e-5, rtol=0)
    assert run.task.target.kind == "characters"


@pytest.mark.parametrize("objective", ["causal", "document"])
def test_a_masked_body_is_taught_on_by_another_objective(objective, folders):
    recipe = Recipe.read("pretrain", "data.sample=", f"model.from={folders['bert']}", f"train.objective={objective}")
    assert not recipe.model.output_transform and recipe.model.segments == 2


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model.size=27", "model.size is 27, but .*has 24: leave it out"),
        ("data.source_tokenizer=words", 'data.source_tokenizer is "words", but .*has "folder": leave it out'),
    ],
)
def test_another_shape_or_tokenizer_beside_the_folder_is_refused(setting, says, folders):
    with pytest.raises(RecipeError, match=says):
        Recipe.read("classify", "data.sample=", f"model.from={folders['bert']}", setting)


def test_a_folder_that_cannot_be_started_from_is_refused_in_a_sentence(folders, tmp_path):
    with pytest.raises(RecipeError, match="that is neither a run folder nor a Hugging Face folder"):
        Recipe.read("classify", f"model.from={tmp_path}")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    with pytest.raises(RunError, match="'model_type' is 'llama', but a run can start from bert"):
        Recipe.read("classify", f"model.from={tmp_path}")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_act": ["gelu"]}))
    with pytest.raises(RunError, match=r"the activation \['gelu'\] has no counterpart in a run"):
        Recipe.read("classify", f"model.from={tmp_path}")
    huggingface.save(huggingface.load(folders["bert"]), bare := tmp_path / "bare")
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        (bare / name).unlink(missing_ok=True)
    recipe = Recipe.read("classify", "data.sample=", f"model.from={bare}", *FEW)
    with pytest.raises(RunError, match="has no tokenizer, so no text can be read"):
        list(train(recipe, tmp_path / "run", examples=PARTS))
    with pytest.raises(RecipeError, match="name the folder by model.from"):
        recipe = Recipe.read("classify", "data.sample=", "data.source_tokenizer=folder", *FEW)
        list(train(recipe, tmp_path / "other", examples=PARTS))


SHAPE = (
    "model.kind=transformer", "model.size=16", "model.depth=2", "model.heads=2", "model.positions=learned",
    "model.max_positions=96", "model.scaled_embedding=false", "data.vocabulary_size=300",
)  # fmt: skip


def test_an_ordinary_run_in_the_shape_of_bert_opens_in_transformers(tmp_path):
    own = ("model.norm=post", "model.embedding_norm=true", "model.norm_epsilon=1e-12", "model.pool=first")
    head = ("model.hidden=16", "model.hidden_activation=tanh", "data.source_tokenizer=bpe", "data.lowercase=true")
    recipe = Recipe.read("classify", "data.sample=", *SHAPE, *own, *head, *FEW)
    list(train(recipe, tmp_path / "run", examples=PARTS))
    run = load(tmp_path / "run")
    export_run(run.folder, "huggingface", tmp_path / "there")
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "there").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    for text in [*TEXTS, "  two  blanks\nand a line, ", "naïve 北京"]:
        ids = torch.from_numpy(run.task.source.encode(text)).long()[None]
        assert tokenizer(text)["input_ids"] == ids[0].tolist()
        close(run.net(ids, torch.ones_like(ids, dtype=torch.bool)), theirs(ids).logits, atol=1e-5, rtol=0)


def test_an_ordinary_run_in_the_shape_of_gpt2_opens_in_transformers(tmp_path):
    own = (
        "model.norm=pre",
        "model.activation=gelu_tanh",
        "model.output_bias=false",
        "model.tied=true",
        "model.ngram=0",
    )
    more = ("data.target_tokenizer=bpe", "train.bptt_window=16", "data.documents=lines")
    recipe = Recipe.read("language", "data.sample=", *SHAPE, *own, *more, *FEW)
    list(train(recipe, tmp_path / "run", examples=LINES))
    run = load(tmp_path / "run")
    export_run(run.folder, "huggingface", tmp_path / "there")
    theirs = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "there").eval()
    ids = torch.from_numpy(run.task.target.encode(TEXTS[0])).long()[None]
    found, wanted = run.net(ids, run.net.initial_state(1))[0], theirs(ids).logits
    close(found[..., 3:], wanted[..., 3:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_a_masked_model_is_taught_on_and_opens_in_transformers(kind, folders, tmp_path):
    still = fit("pretrain", folders[kind], tmp_path / "still", "train.learning_rate=1e-12", "data.window=16")
    moved = fit("pretrain", folders[kind], tmp_path / "moved", "data.window=16")
    export_run(moved.folder, "huggingface", tmp_path / "there")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    field = moved.task.target
    rows = torch.from_numpy(field.rows)
    for run, folder in ((still, folders[kind]), (moved, tmp_path / "there")):
        theirs = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
        for text in TEXTS:
            ids = torch.from_numpy(field.encode(text)).long()[None]
            found = run.net(ids, torch.ones_like(ids, dtype=torch.bool))[..., rows >= 0]
            wanted = theirs(**tokenizer(text, return_tensors="pt")).logits[..., rows[rows >= 0]]
            may = found.isfinite()
            close(found[may], wanted[may], atol=1e-5, rtol=0)
            assert may.float().mean() > 0.9


def test_an_ordinary_masked_run_in_the_shape_of_bert_opens_in_transformers(tmp_path):
    own = ("model.norm=post", "model.embedding_norm=true", "model.norm_epsilon=1e-12", "model.output_transform=true")
    recipe = Recipe.read("pretrain", "data.sample=", *SHAPE, *own, "model.tied=true", "data.window=16", *FEW)
    list(train(recipe, tmp_path / "run", examples=LINES))
    run = load(tmp_path / "run")
    export_run(run.folder, "huggingface", tmp_path / "there")
    theirs = transformers.BertForMaskedLM.from_pretrained(tmp_path / "there").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "there")
    asked = tokenizer(f"The{tokenizer.mask_token} is a flightless bird.", return_tensors="pt")
    wanted = theirs(**asked).logits.detach()
    found = run.net(asked["input_ids"], torch.ones_like(asked["input_ids"], dtype=torch.bool))
    close(found[..., 3:], wanted[..., 3:], atol=1e-5, rtol=0)
    place = int((asked["input_ids"][0] == tokenizer.mask_token_id).nonzero())
    logs = found[0, place].log_softmax(-1)
    for filled in run.fill("The ___ is a flightless bird.", 3)[0]:
        token = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(f" {filled.output}"))
        assert len(token) == 1 and 0 < logs[token[0]].exp() <= filled.probability + 1e-6
    assert len(huggingface.load(tmp_path / "there").logits(asked["input_ids"])) == 1


def test_a_run_of_another_shape_is_refused_with_the_setting(tmp_path):
    recipe = Recipe.read("classify", "data.sample=", "data.source_tokenizer=words", "model.kind=transformer",
                         "model.size=16", "model.heads=2", *FEW)  # fmt: skip
    list(train(recipe, tmp_path / "run", examples=PARTS))
    with pytest.raises(RunError, match="model.norm is 'pre', but in the shape of bert it is 'post'"):
        export_run(tmp_path / "run", "huggingface", tmp_path / "there")
    assert not (tmp_path / "there").exists()
