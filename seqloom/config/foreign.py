"""Hugging Face folders as something that a recipe starts from: which settings the model of their config.json has.

Only what a recipe has to say is read here; the weights, and everything else of the folder, are checked when they are.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunError

if TYPE_CHECKING:
    from .recipe import Recipe

WINDOW = 128  # tokens that are read at once, if there are so many positions
LARGEST = 1 << 20  # bytes of a config.json
FOLDER = "folder"  # the tokenizer of such a folder
# What each family calls a setting, and what it is where the file does not say.
ENCODER = {
    "size": ("hidden_size", 768),
    "depth": ("num_hidden_layers", 12),
    "heads": ("num_attention_heads", 12),
    "feed_forward": ("intermediate_size", 3072),
    "activation": ("hidden_act", "gelu"),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "max_positions": ("max_position_embeddings", 512),
    "norm_epsilon": ("layer_norm_eps", 1e-12),
    "segments": ("type_vocab_size", 2),
}
FAMILIES: dict[str, dict[str, tuple[str, Any]]] = {
    "bert": ENCODER,
    "roberta": ENCODER,
    "distilbert": {
        "size": ("dim", 768),
        "depth": ("n_layers", 6),
        "heads": ("n_heads", 12),
        "feed_forward": ("hidden_dim", 3072),
        "activation": ("activation", "gelu"),
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.1),
        "max_positions": ("max_position_embeddings", 512),
    },
    "gpt2": {
        "size": ("n_embd", 768),
        "depth": ("n_layer", 12),
        "heads": ("n_head", 12),
        "feed_forward": ("n_inner", 0),
        "activation": ("activation_function", "gelu_new"),
        "dropout": ("resid_pdrop", 0.1),
        "attention_dropout": ("attn_pdrop", 0.1),
        "max_positions": ("n_positions", 1024),
        "norm_epsilon": ("layer_norm_epsilon", 1e-5),
    },
    "marian": {
        "size": ("d_model", 1024),
        "encoder.depth": ("encoder_layers", 12),
        "encoder.heads": ("encoder_attention_heads", 16),
        "encoder.feed_forward": ("encoder_ffn_dim", 4096),
        "decoder.depth": ("decoder_layers", 12),
        "decoder.heads": ("decoder_attention_heads", 16),
        "decoder.feed_forward": ("decoder_ffn_dim", 4096),
        "activation": ("activation_function", "gelu"),
        "dropout": ("dropout", 0.1),
        "attention_dropout": ("attention_dropout", 0.0),
        "scaled_embedding": ("scale_embedding", False),
        "shared_embedding": ("share_encoder_decoder_embeddings", True),
    },
}
# What all models of a family have alike, beside what is so in a run without being said.
MASKED_SHAPE = {"norm": "post", "embedding_norm": True, "positions": "learned", "scaled_embedding": False}
SHAPES: dict[str, dict[str, Any]] = {
    "bert": MASKED_SHAPE,
    "roberta": MASKED_SHAPE,
    "distilbert": {**MASKED_SHAPE, "norm_epsilon": 1e-12},
    "gpt2": {"norm": "pre", "embedding_norm": False, "positions": "learned", "scaled_embedding": False},
    "marian": {"norm": "post", "embedding_norm": False, "positions": "sinusoidal", "norm_epsilon": 1e-5},
}
HEADS = {"bert": "tanh", "distilbert": "relu", "roberta": "tanh"}  # what the hidden layer of a classifier ends with
ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), "gelu"),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
    "relu": "relu",
    **dict.fromkeys(("silu", "swish"), "silu"),
}


def is_foreign(folder: str) -> bool:
    """Whether this is a folder of another library. A run has a config.json, too, beside its recipe."""
    path = Path(folder)
    return "\0" not in folder and (path / "config.json").is_file() and not (path / "recipe.toml").exists()


def read_family(folder: str | Path) -> tuple[str, dict[str, Any]]:
    """The family of the model in a folder, and what its config.json says."""
    place = Path(folder) / "config.json"
    try:
        with open(place, "rb") as file:
            config = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        raise RunError(f"{place}: is no JSON that can be read") from None
    family = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(family, str) or family not in FAMILIES:
        raise RunError(f"{place}: 'model_type' is {family!r:.80}, but a run can start from {', '.join(FAMILIES)}")
    return family, config


def read_recipe(folder: str | Path) -> "Recipe":
    """The recipe of a run that has the shape of the model in a folder."""
    from .recipe import Recipe

    family, config = read_family(folder)
    names = FAMILIES[family].items()
    settings = {ours: default if config.get(theirs) is None else config[theirs] for ours, (theirs, default) in names}
    if not isinstance(activation := settings["activation"], str) or activation not in ACTIVATIONS:
        raise RunError(f"{Path(folder) / 'config.json'}: the activation {activation!r:.80} has no counterpart in a run")
    offset = config.get("pad_token_id", 1) if family == "roberta" else -1
    longest = settings.get("max_positions")
    if isinstance(longest, int) and isinstance(offset, int):
        settings["max_positions"] = longest = longest - offset - 1
    model: dict[str, Any] = {
        "kind": "transformer",
        "embedding": settings["size"],
        **SHAPES[family],
        "tied": config.get("tie_word_embeddings") is not False,
    }
    for name, value in (settings | {"activation": ACTIVATIONS[activation]}).items():
        side, _, key = name.rpartition(".")
        (model.setdefault(side, {}) if side else model)[key] = value
    data, window = {"target_tokenizer": FOLDER}, min(WINDOW, longest) if isinstance(longest, int) else WINDOW
    if family == "marian":
        data |= {"source_tokenizer": FOLDER, "shared": model["shared_embedding"]}
        return Recipe.of({"task": "seq2seq", "model": model, "data": data}).resolved()
    if family == "gpt2":
        own = {"model": {**model, "output_bias": False}, "data": data, "train": {"bptt_window": window}}
        return Recipe.of({"task": "language", **own}).resolved()
    model["output_transform"] = True
    return Recipe.of({"task": "pretrain", "model": model, "data": {**data, "window": window}}).resolved()
