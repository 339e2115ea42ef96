"""A run in the shape of one of their families as such a model: what `export --to huggingface` writes.

A run has that shape if it started from such a folder, or if its settings are those of the family. Whatever differs is
refused with the setting that makes it so.
"""

from copy import copy
from typing import Any

import torch

from ...config.foreign import ACTIVATIONS, FAMILIES, HEADS, SHAPES
from ...config.recipe import Recipe
from ...data.vocabulary import END, PAD, START
from ...errors import RunError
from .field import FolderText
from .folder import create
from .model import MASKED, PretrainedModel
from .shapes import name_tables, pair_bodies
from .tokenizer_file import write_tokenizer

ROBERTA_OFFSET = 2  # rows of the table of positions in front of the first, with padding 1
READERS = {"bert": "Bert", "distilbert": "DistilBert", "roberta": "Roberta"}
ANSWERS = {"classify": "ForSequenceClassification", "pretrain": "ForMaskedLM"}
POSITIONS = 1024  # of a Marian, which computes them: that many are tabulated
WRITTEN = {"gpt2": {"language", "causal"}, "marian": {"seq2seq"}}  # by the family; all others:
READ = {"classify", "masked"}
# What a body in such a shape has not, beside what its family says.
PLAIN = {"norm_type": "layer", "key_size": 0, "value_size": 0, "window": 0, "hard_attention": False, "bias": True}


def convert_run(run: Any) -> PretrainedModel:
    """The model of a run as one of theirs, with its tokenizer and its labels."""
    recipe, task = run.task.recipe, run.task
    if run.mixture is not None:
        raise RunError(
            f"{' and '.join(run.mixture.settings)} is mixed into this run, which has no place in such a folder: "
            "run.drop_mixture() leaves the network alone"
        )
    fields = {"source": task.fields.get("source", task.target), "target": task.target}
    family = choose_family(recipe, fields["source"])
    check_shape(recipe, family)
    config = write_config(recipe, family, fields)
    pretrained = create(config, READERS[family] + ANSWERS[recipe.task] if family in READERS else "")
    with torch.no_grad():
        copy_weights(run.net, pretrained, fields)
    if fields["source"].kind == FolderText.kind:
        pretrained.tokenizer = copy(fields["source"].tokenizer)
        pretrained.tokenizer.files = fields["source"].files | (fields["target"].files if family == "marian" else {})
    elif family != "marian" or recipe.data.shared:
        pretrained.tokenizer = write_tokenizer(fields["source"])
    return pretrained.eval()


def choose_family(recipe: Recipe, field: Any) -> str:
    """That of the folder that the run started from; otherwise the one that the task and the norms are of."""
    if recipe.model.two_sided:
        return "marian"
    if field.kind == FolderText.kind and field.family != "marian":
        return str(field.family)
    return "gpt2" if not recipe.model.reads_ahead or recipe.train.objective == "causal" else "bert"


def check_shape(recipe: Recipe, family: str) -> None:
    """Refuse a run that transformers has no class for."""
    model, objective = recipe.model, recipe.train.objective if recipe.task == "pretrain" else ""
    if (objective or recipe.task) not in WRITTEN.get(family, READ):
        raise RunError(
            f"a run of the task {recipe.task} has no counterpart in transformers that is written here: classify and "
            "pretrain with train.objective masked are written as BERT and its relatives, language and pretrain with "
            "train.objective causal as GPT-2, seq2seq as Marian"
        )
    sides = {f"model.{side}.": model.side(side) for side in ("encoder", "decoder")} if model.two_sided else {}
    for place, side in sides.items() or [("model.", model)]:
        if side.kind != "transformer":
            raise RunError(f"a {side.kind} is not in the shape of one of these families: {', '.join(FAMILIES)}")
        own = {name: value for name, value in SHAPES[family].items() if hasattr(side, name)}
        check_settings(side, PLAIN | own | ({"size": model.size} if sides else {}), place, family)
        if side.activation not in ACTIVATIONS.values():
            raise RunError(f"{place}activation is {side.activation!r}, which {family} does not have")
    expected: dict[str, Any] = {"embedding": model.size}
    if family == "gpt2":
        expected |= {"output_bias": False}
    elif objective:
        expected |= {"output_transform": True, "output_bias": True, "tied": True}
    elif recipe.task == "classify":
        expected |= {"causal": False, "pool": "first", "hidden": model.size, "hidden_layers": 1}
        expected |= {"hidden_activation": HEADS[family]}
    check_settings(model, expected, "model.", family)
    if recipe.task == "classify" and recipe.data.target_type != "label":
        raise RunError(f"data.target_type is {recipe.data.target_type!r}, but only one label a text is written")
    if recipe.task in ("classify", "seq2seq") and (recipe.data.tag or recipe.data.source_type != "tokens"):
        raise RunError("only a run whose source is a text, without data.tag, is written")


def check_settings(table: Any, expected: dict[str, Any], place: str, family: str) -> None:
    for name, value in expected.items():
        if (own := getattr(table, name)) != value:
            raise RunError(f"{place}{name} is {own!r}, but in the shape of {family} it is {value!r}")


def write_config(recipe: Recipe, family: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What config.json says, in their words."""
    model, source = recipe.model, fields["source"]
    foreign = source.kind == FolderText.kind
    values: dict[str, Any] = {
        "activation": next(theirs for theirs, ours in ACTIVATIONS.items() if ours == model.activation)
    }
    for name in FAMILIES[family]:
        side, _, key = name.rpartition(".")
        values.setdefault(
            name, getattr(model.side("decoder" if side == "decoder" else "encoder") if side else model, key)
        )
    if family in ("bert", "roberta"):
        values["segments"] = max(model.segments, 1)
    if family == "roberta":
        values["max_positions"] += ROBERTA_OFFSET
    config: dict[str, Any] = {FAMILIES[family][name][0]: value for name, value in values.items()}
    config |= {"model_type": family, "vocab_size": source.size if foreign else len(source)}
    if family == "gpt2":
        end = int(source.rows[END]) if foreign else END
        return config | {"tie_word_embeddings": model.tied, "eos_token_id": end, "bos_token_id": end}
    if family == "marian":
        return config | describe_writing(fields["target"], foreign) | {"tie_word_embeddings": model.tied}
    config["pad_token_id"] = 1 if family == "roberta" else PAD
    if recipe.task != "classify":
        return config
    names = fields["target"].symbols
    config |= {"id2label": {str(number): name for number, name in enumerate(names)}}
    return config | {"label2id": {name: number for number, name in enumerate(names)}}


def describe_writing(target: Any, foreign: bool) -> dict[str, Any]:
    """What a Marian begins and ends with; what it begins with is nothing that it writes."""
    size, start, end = (target.size, target.start, int(target.rows[END])) if foreign else (len(target), START, END)
    return {
        "decoder_vocab_size": size,
        "max_position_embeddings": POSITIONS,
        "decoder_start_token_id": start,
        "pad_token_id": start if foreign else PAD,
        "eos_token_id": end,
        "forced_eos_token_id": None,
        "bad_words_ids": [[start]] if foreign else [[PAD], [START]],
    }


def copy_weights(model: Any, pretrained: PretrainedModel, fields: dict[str, Any]) -> None:
    """Ours into theirs: the body in order, the tables by their numbers of the tokens, the head by what it is for."""
    for ours, theirs in pair_bodies(model, pretrained):
        theirs.zero_()[len(theirs) - len(ours) :] = ours
    others = name_tables(pretrained.network)
    for side, (tokens, segments) in name_tables(model).items():
        field = fields[side if model.generates else "source"]
        rows, (vectors, own) = number_rows(field), others[side]
        vectors[rows[rows >= 0]] = tokens[rows >= 0]
        if own is not None:
            own.copy_(segments) if segments is not None else own.zero_()
    head, answer = model.head, pretrained.network.head
    rows = number_rows(fields["target"]) if model.generates or pretrained.answers == MASKED else torch.empty(0)
    known = rows >= 0
    if model.generates:
        answer.project.weight[rows[known]] = head.project.weight[known]
        if model.source is not None and head.project.bias is not None:
            answer.project.bias[rows[known]] = head.project.bias[known]
        return
    if pretrained.answers == MASKED:
        answer.hidden.load_state_dict(head.hidden.state_dict())
        answer.head.project.bias[rows[known]] = head.head.project.bias[known]
        return
    dense = pretrained.pooling_layer
    hidden, last = (answer.hidden[0], answer.head) if dense is None else (dense, answer)
    hidden.load_state_dict(head.hidden[0].state_dict())
    last.project.load_state_dict(head.head.project.state_dict())


def number_rows(field: Any) -> torch.Tensor:
    """By our number of a token, theirs; -1 for what they do not have."""
    return torch.from_numpy(field.rows) if field.kind == FolderText.kind else torch.arange(len(field))
