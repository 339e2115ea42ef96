"""A run in the shape of one of their families as such a model: what `export --to huggingface` writes.

A run has that shape if it started from such a folder, or if its settings are those of the family. Whatever differs is
refused with the setting that makes it so.
"""

from typing import Any

import torch

from ...config.foreign import ACTIVATIONS, HEADS, NORMS
from ...config.recipe import Recipe
from ...data.vocabulary import END, PAD
from ...errors import RunError
from .field import FolderText
from .folder import FAMILIES, create
from .model import MASKED, PretrainedModel
from .shapes import pair_bodies, tables
from .tokenizer_file import write_tokenizer

ROBERTA_OFFSET = 2  # rows of the table of positions in front of the first, with padding 1
READERS = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta"}
ANSWERS = {"classify": "ForSequenceClassification", "pretrain": "ForMaskedLM"}


def convert_run(run: Any) -> PretrainedModel:
    """The model of a run as one of theirs, with its tokenizer and its labels."""
    recipe, task = run.task.recipe, run.task
    field = task.fields.get("source", task.target)
    family = choose_family(recipe, field)
    check_shape(recipe, family)
    config = write_config(recipe, family, field, task)
    pretrained = create(config, "" if family == "gpt2" else READERS[family] + ANSWERS[recipe.task])
    with torch.no_grad():
        copy_weights(run.net, pretrained, field)
    pretrained.tokenizer = field.tokenizer if field.kind == FolderText.kind else write_tokenizer(field)
    return pretrained.eval()


def choose_family(recipe: Recipe, field: Any) -> str:
    """That of the folder that the run started from; otherwise the one that the task and the norms are of."""
    if field.kind == FolderText.kind:
        return str(field.family)
    return "gpt2" if not recipe.model.reads_ahead or recipe.train.objective == "causal" else "bert"


def check_shape(recipe: Recipe, family: str) -> None:
    """Refuse a run that transformers has no class for."""
    model, generates = recipe.model, family == "gpt2"
    objective = recipe.train.objective if recipe.task == "pretrain" else ""
    known = {"language", "causal"} if generates else {"classify", "masked"}
    if (objective or recipe.task) not in known:
        raise RunError(
            f"a run of the task {recipe.task} has no counterpart in transformers that is written here: classify and "
            "pretrain with train.objective masked are written as BERT and its relatives, language and pretrain with "
            "train.objective causal as GPT-2"
        )
    if model.kind != "transformer":
        raise RunError(f"a {model.kind} is not in the shape of one of these families: {', '.join(FAMILIES)}")
    expected: dict[str, Any] = {
        "norm": NORMS[family],
        "norm_type": "layer",
        "embedding_norm": not generates,
        "positions": "learned",
        "key_size": 0,
        "value_size": 0,
        "window": 0,
        "hard_attention": False,
        "bias": True,
        "scaled_embedding": False,
        "embedding": model.size,
    }
    if generates:
        expected |= {"output_bias": False}
    elif objective:
        expected |= {"output_transform": True, "output_bias": True, "tied": True}
    else:
        expected |= {"causal": False, "pool": "first", "hidden": model.size, "hidden_layers": 1}
        expected |= {"hidden_activation": HEADS[family]}
    for name, value in expected.items():
        if (own := getattr(model, name)) != value:
            raise RunError(f"model.{name} is {own!r}, but in the shape of {family} it is {value!r}")
    if model.activation not in ACTIVATIONS.values():
        raise RunError(f"model.activation is {model.activation!r}, which {family} does not have")
    if family == "distilbert" and model.norm_epsilon != 1e-12:
        raise RunError(f"model.norm_epsilon is {model.norm_epsilon}, but in the shape of distilbert it is 1e-12")
    if recipe.task == "classify" and recipe.data.target_type != "label":
        raise RunError(f"data.target_type is {recipe.data.target_type!r}, but only one label a text is written")


def write_config(recipe: Recipe, family: str, field: Any, task: Any) -> dict[str, Any]:
    """What config.json says, in their words."""
    model, known = recipe.model, FAMILIES[family].config.model_fields
    foreign = field.kind == FolderText.kind
    values = {
        "vocabulary": field.size if foreign else len(field),
        "size": model.size,
        "depth": model.side("encoder").depth,
        "heads": model.heads,
        "hidden": model.feed_forward,
        "activation": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == model.activation),
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "positions": model.max_positions + (ROBERTA_OFFSET if family == "roberta" else 0),
        "epsilon": model.norm_epsilon,
        "padding": 1,
    }
    if family in ("bert", "roberta"):
        values["segments"] = max(model.segments, 1)
    config = {known[name].alias or name: value for name, value in values.items() if name in known}
    if family == "gpt2":
        end = int(field.rows[END]) if foreign else END
        return {
            "model_type": family,
            **config,
            "tie_word_embeddings": model.tied,
            "eos_token_id": end,
            "bos_token_id": end,
        }
    if not foreign:
        config |= {"pad_token_id": PAD}
    if recipe.task != "classify":
        return {"model_type": family, **config}
    names = task.target.symbols
    config |= {"id2label": {str(number): name for number, name in enumerate(names)}}
    return {"model_type": family, **config, "label2id": {name: number for number, name in enumerate(names)}}


def copy_weights(model: Any, pretrained: PretrainedModel, field: Any) -> None:
    """Ours into theirs: the body in order, the tables by their numbers of the tokens, the head by what it is for."""
    for ours, theirs in pair_bodies(model, pretrained):
        theirs.zero_()[len(theirs) - len(ours) :] = ours
    rows = torch.from_numpy(field.rows) if field.kind == FolderText.kind else torch.arange(len(field))
    known = rows >= 0
    (tokens, segments), (theirs, others) = tables(model), tables(pretrained.network)
    theirs[rows[known]] = tokens[known]
    if others is not None:
        others.copy_(segments) if segments is not None else others.zero_()
    head, answer = model.head, pretrained.network.head
    if model.generates:
        answer.project.weight[rows[known]] = head.project.weight[known]
        return
    if pretrained.answers == MASKED:
        answer.hidden.load_state_dict(head.hidden.state_dict())
        answer.head.project.bias[rows[known]] = head.head.project.bias[known]
        return
    dense = pretrained.pooling_layer
    hidden, last = (answer.hidden[0], answer.head) if dense is None else (dense, answer)
    hidden.load_state_dict(head.hidden[0].state_dict())
    last.project.load_state_dict(head.head.project.state_dict())
