"""A Hugging Face folder in and out: `load`, `save`, and `create` for a new model of such a shape.

A folder is data: its config.json chooses from our list of families, its weights are safetensors, its tokenizer is read
by a library that runs nothing. What would need code of theirs is refused.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from ...errors import RunError
from ...schemas import check_shape
from ...training.files import json_bytes, read_json
from ..folder import refuse_existing, write_folder
from .bert import BERT
from .card import write_card
from .distilbert import DISTILBERT
from .family import Family
from .gpt2 import GPT2
from .marian import MARIAN
from .model import PretrainedModel
from .roberta import ROBERTA
from .table import read_weights, write_weights
from .tokenizer import read_tokenizer
from .weights import WEIGHTS, drop_copies, name_weights, read_folder_weights, refuse_link

FAMILIES = {family.name: family for family in (BERT, DISTILBERT, ROBERTA, GPT2, MARIAN)}
CODE = ("auto_map", "trust_remote_code", "custom_pipelines", "quantization_config")
GENERATION = ("eos_token_id", "bad_words_ids", "decoder_start_token_id")  # what generation_config.json may say anew

PRESETS: dict[str, dict[str, Any]] = {
    "bert-base": {"model_type": "bert"},
    "bert-large": {
        "model_type": "bert",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    "gpt2": {"model_type": "gpt2"},
    "gpt2-medium": {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16},
    "distilbert": {"model_type": "distilbert"},
}


# --- reading --------------------------------------------------------------------------------------------------


def load(folder: str | Path, count_padding: bool = False) -> PretrainedModel:
    """The model in a folder, in single precision, ready to be asked (`eval`).

    Positions count what the mask shows, so padding on either side changes nothing. In transformers they count padding
    on the left as well, unless it is told the positions; `count_padding` does that, too (RoBERTa's never do).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RunError(f"{folder}: is not a folder")
    family, config, architecture = read_config(folder)
    weights = name_weights(family, read_folder_weights(folder), folder)
    extras = frozenset(
        name for name, start in family.extras.items() if any(weight.startswith(start) for weight in weights)
    )
    settings = read_settings(family, {**config, **read_generation(folder)}, folder / "config.json")
    model = build(family, settings, architecture, extras | family.needed.get(architecture, frozenset()))
    model.config = config
    positions: list[Any] = [part for part in model.modules() if hasattr(part, "count_padding")]
    for part in positions:
        part.count_padding = count_padding and family is not ROBERTA
    fill(model, read_weights(model.rows, drop_copies(family, settings, weights, folder), shapes_of(model), folder))
    model.tokenizer = read_tokenizer(folder, family.name)
    if model.tokenizer is not None and model.tokenizer.largest_id >= settings.vocabulary:
        raise RunError(
            f"{folder}: the tokenizer has the id {model.tokenizer.largest_id}, "
            f"but the model has vectors for {settings.vocabulary} tokens"
        )
    return model.eval()


def read_config(folder: Path) -> tuple[Family, dict[str, Any], str]:
    """What config.json says: which family it is of, all of it, and which architecture."""
    place = folder / "config.json"
    refuse_link(place)
    config = read_json(place)
    for file in (place, folder / "tokenizer_config.json"):
        settings = config if file is place else read_json(file) if file.exists() else {}
        for key in CODE:
            if settings.get(key):
                raise RunError(f"{file}: asks for {key!r}, which is code or a format of its own; no code is run here")
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        name = f"{config.get('model_type')!r:.80}"
        raise RunError(f"{place}: 'model_type' is {name}, but it can be {', '.join(FAMILIES)}")
    architectures = config.get("architectures")
    if (
        not isinstance(architectures, list)
        or len(architectures) != 1
        or str(architectures[0]) not in family.architectures
    ):
        raise RunError(
            f"{place}: 'architectures' is {architectures!r:.80}, but it can be {', '.join(family.architectures)}"
        )
    return family, config, str(architectures[0])


def read_generation(folder: Path) -> dict[str, Any]:
    path = folder / "generation_config.json"
    settings = read_json(path) if path.exists() else {}
    return {key: settings[key] for key in GENERATION if settings.get(key) is not None}


def read_settings(family: Family, config: Mapping[str, Any], place: Path | str) -> Any:
    settings = check_shape(family.config, dict(config), str(place))
    for heads in ("heads", "encoder_heads", "decoder_heads"):
        if (number := getattr(settings, heads, 0)) and settings.size % number:
            raise RunError(f"{place}: {settings.size} features cannot be shared out evenly among {number} heads")
    return settings


# --- building -------------------------------------------------------------------------------------------------


def build(family: Family, settings: Any, architecture: str, extras: frozenset[str]) -> PretrainedModel:
    """The model without memory for its weights: a configuration may claim any size."""
    with torch.device("meta"):
        model: PretrainedModel = family.model(family, settings, architecture, extras)
    for part in model.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer.is_meta:  # of a head: zeros, or nothing at all
                part._buffers[name] = torch.zeros_like(buffer, device="cpu")
    return model


def shapes_of(model: nn.Module) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def fill(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give each parameter its numbers; those that were one stay one."""
    names: dict[int, list[str]] = defaultdict(list)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names[id(parameter)].append(name)
    for same in names.values():
        weight = nn.Parameter(weights[same[0]])
        for name in same:
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, weight)


def create(config: str | Mapping[str, Any], architecture: str = "", seed: int = 0) -> PretrainedModel:
    """A new model by a preset's name or a configuration in their words, with weights drawn as in the papers.

    Without an `architecture` it is the family's first: a masked or a left-to-right language model, or a translator.
    """
    if isinstance(config, str):
        if config not in PRESETS:
            raise RunError(f"there is no preset {config!r:.80}, but {', '.join(PRESETS)}")
        config = PRESETS[config]
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None:
        raise RunError(f"'model_type' is {config.get('model_type')!r:.80}, but it can be {', '.join(FAMILIES)}")
    architecture = architecture or next(iter(family.architectures))
    if architecture not in family.architectures:
        raise RunError(f"a {family.name} is one of {', '.join(family.architectures)}, not {architecture!r:.80}")
    settings = read_settings(family, config, "the configuration")
    model = build(family, settings, architecture, family.needed.get(architecture, frozenset()))
    model.config = {**config, "architectures": [architecture]}
    fill(model, draw_weights(model, seed))
    return model


def draw_weights(model: nn.Module, seed: int) -> dict[str, Tensor]:
    """Normal with a deviation of 0.02; norms begin as the identity, biases at zero."""
    generator, drawn = torch.Generator().manual_seed(seed), {}
    norms = {name for name, part in model.named_modules() if isinstance(part, nn.LayerNorm)}
    for name, parameter in model.named_parameters():
        owner, _, leaf = name.rpartition(".")
        if owner in norms or leaf == "bias":
            drawn[name] = torch.full(parameter.shape, 1.0 if leaf == "weight" else 0.0)
        else:
            drawn[name] = torch.randn(parameter.shape, generator=generator) * 0.02
    return drawn


def change_head(model: PretrainedModel, architecture: str, labels: list[str] | None = None, seed: int = 0) -> Any:
    """A model with this one's body (a copy), tokenizer and configuration, and a new head for other answers."""
    config = {**model.config, "model_type": model.family.name}
    if labels is not None:
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    changed = create(config, architecture, seed)
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in changed.named_parameters():
            if not name.startswith(("network.head.", "others.")) and name in own:
                parameter.copy_(own[name])
    changed.tokenizer = model.tokenizer
    return changed.train(model.training)


# --- writing --------------------------------------------------------------------------------------------------


def save(model: Any, folder: str | Path) -> None:
    """Write a model or a run as a folder that transformers loads by `from_pretrained`, with a model card; all of it or
    nothing."""
    from .runs import convert_run

    folder, model = Path(folder), convert_run(model) if hasattr(model, "task") else model
    if not isinstance(model, PretrainedModel):
        shapes = ", ".join(FAMILIES)
        raise RunError(f"a {type(model).__name__} is not in the shape of one of these families: {shapes}")
    refuse_existing(folder)
    files = {
        "config.json": json_bytes(make_config(model)),
        WEIGHTS: safetensors.torch.save(collect_weights(model), metadata={"format": "pt"}),
        "README.md": write_card(model, folder.resolve().name).encode(),
        **(model.tokenizer.files if model.tokenizer is not None else {}),
    }
    write_folder(folder, files)


def make_config(model: PretrainedModel) -> dict[str, Any]:
    kept = {key: value for key, value in model.config.items() if key not in ("_name_or_path", "torch_dtype")}
    own = {"model_type": model.family.name, "architectures": [model.architecture], "dtype": "float32"}
    return {**kept, **own}


def collect_weights(model: PretrainedModel) -> dict[str, Tensor]:
    ours = {name: parameter.float() for name, parameter in model.named_parameters()}
    theirs = write_weights(model.rows, ours)
    if model.family.is_bare(model.architecture):
        return {name.removeprefix(model.family.prefix): tensor for name, tensor in theirs.items()}
    return theirs
