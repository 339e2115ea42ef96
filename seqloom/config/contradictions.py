"""Settings of different tables that contradict each other, each refused with a sentence and its place."""

from typing import TYPE_CHECKING, Any

from ..architectures import ARCHITECTURES
from .messages import MisplacedSetting, literal
from .model import SIDES

if TYPE_CHECKING:
    from .recipe import Recipe

LABELERS = ("classify", "tag", "transcribe")  # tasks that answer from what they read, whatever it is


def check_losses(recipe: "Recipe") -> None:
    """What changes the loss of one label has no effect on that of a whole path, of several labels or of a number."""
    why = ""
    if recipe.task == "tag" and recipe.model.crf:
        why = "with model.crf the loss is that of a whole path: choose one"
    if recipe.task == "classify" and recipe.data.target_type != "label":
        why = f"with data.target_type {literal(recipe.data.target_type)} the loss is not that of one label"
    for name in ("label_smoothing", "class_weights") if why else ():
        if getattr(recipe.train, name):
            raise MisplacedSetting(["train", name], f"train.{name} is set, but {why}")


def check_endings(recipe: "Recipe") -> None:
    if recipe.task == "tag" and recipe.data.endings and recipe.data.source_type != "tokens":
        raise MisplacedSetting(["data", "endings"], "data.endings is set, but only words have endings")


def check_lexicon(recipe: "Recipe") -> None:
    """Words have counted tags, and those speak to the tags themselves."""
    if recipe.task == "tag" and recipe.model.lexicon:
        faults = {
            ("data", "source_type"): recipe.data.source_type != "tokens" and "only words have tags that can be counted",
            ("model", "hidden"): bool(recipe.model.hidden) and "model.hidden puts a layer before the tags",
            ("model", "bias"): not getattr(recipe.model, "bias", True) and "without model.bias it has no beginning",
        }
        for setting, why in faults.items():
            if why:
                raise MisplacedSetting(list(setting), f"model.lexicon is true, but {why}")


def check_nb_svm(recipe: "Recipe") -> None:
    """Texts that have one label have evidence for it."""
    if recipe.task == "classify" and recipe.model.nb_svm:
        faults = {
            ("data", "source_type"): recipe.data.source_type != "tokens" and "only texts have tokens to be counted",
            ("data", "target_type"): recipe.data.target_type != "label" and "it answers with one label",
            ("model", "kind"): recipe.model.kind == "bag" and 'kind "bag" begins as NB-SVM already (model.naive_bayes)',
        }
        for setting, why in faults.items():
            if why:
                raise MisplacedSetting(list(setting), f"model.nb_svm is true, but {why}")


def check_numbers(recipe: "Recipe") -> None:
    """What reads numbers gets them, in pieces that fit."""
    kinds = {recipe.model.kind, *(recipe.model.side(side).kind for side in SIDES)}
    if any(ARCHITECTURES[kind].only_numbers for kind in kinds):
        if recipe.task != "forecast" and (recipe.task not in LABELERS or recipe.data.source_type != "numbers"):
            but = f", and data.source_type is {literal(recipe.data.source_type)}" if recipe.task in LABELERS else ""
            raise MisplacedSetting(
                ["model", "kind"],
                'model.kind "gru-d" reads numbers of which some are missing, as series have them, '
                f"but this is a recipe whose task is to {recipe.use.does}{but}",
            )
        if recipe.model.patch_length > 1:
            raise MisplacedSetting(
                ["model", "patch_length"],
                'model.patch_length is set, but kind "gru-d" reads one row after the other',
            )
    if any(ARCHITECTURES[kind].only_classifies for kind in kinds):
        if recipe.task != "classify" or recipe.data.source_type != "tokens":
            raise MisplacedSetting(
                ["model", "kind"], 'model.kind "bag" sums up the tokens of a text: only classify reads that'
            )
        if recipe.model.embedding not in (0, recipe.model.size):
            raise MisplacedSetting(
                ["model", "embedding"],
                f'model.embedding is {recipe.model.embedding}, but what kind "bag" sums up are embeddings: '
                f"they have model.size, {recipe.model.size}, features",
            )
    if recipe.task == "forecast" and recipe.data.context % recipe.model.patch_length:
        raise MisplacedSetting(
            ["model", "patch_length"],
            f"model.patch_length is {recipe.model.patch_length}, which does not divide data.context, "
            f"{recipe.data.context}, evenly",
        )


def check_spelling(recipe: "Recipe") -> None:
    """Characters of words are read where there are words, and settings of that are set where they are read."""
    data, model = recipe.data, recipe.model
    if model.one_hot:
        learned: dict[tuple[str, ...], Any] = {
            ("data", "characters"): data.characters,
            ("data", "vectors"): data.vectors,
            ("data", "target_vectors"): data.target_vectors,
            ("data", "tag"): data.tag,
            ("model", "tied"): model.tied,
        }
        for path, present in learned.items():
            if present:
                raise MisplacedSetting(
                    list(path), f"{'.'.join(path)} is set, but with model.one_hot no embedding is learned"
                )
        if model.kind == "bag":
            raise MisplacedSetting(["model", "one_hot"], 'model.one_hot is set, but kind "bag" pools embeddings')
    if not data.characters:
        for name in ("spelling", "word_vectors"):
            if name in type(model).model_fields and getattr(model, name) != type(model).model_fields[name].default:
                raise MisplacedSetting(
                    ["model", name],
                    f"model.{name} is set, but data.characters is 0: no characters of words are read",
                )
        return
    cut = {"classify": [data.source_tokenizer], "tag": ["words"]}.get(
        recipe.task, [data.target_tokenizer] + [data.source_tokenizer] * (recipe.task == "seq2seq")
    )
    if data.source_type != "tokens":
        if recipe.task == "tag":  # whose recipe reads characters: with numbers in the place of words there are none
            return
        cut = cut[:1] if recipe.task == "seq2seq" else []
    faults = {
        ("data", "characters"): not {"words", "spaced"} & set(cut) and "nothing that is read is cut into words",
        ("model", "tied"): model.tied and "what is composed of characters cannot serve as an output layer",
        ("data", "tag"): bool(data.tag) and "a tag has no characters",
        ("data", "vectors"): bool(data.vectors or data.target_vectors)
        and not model.word_vectors
        and "model.word_vectors is false: there are none to begin with",
        ("model", "kind"): model.kind == "bag" and 'kind "bag" begins with whole words',
        ("task",): recipe.task == "pretrain" and "pretrain hides whole tokens",
    }
    for setting, why in faults.items():
        if why:
            raise MisplacedSetting(list(setting), f"data.characters is {data.characters}, but {why}")


def check_blocks(recipe: "Recipe") -> None:
    if recipe.model.non_local and recipe.model.causal:
        raise MisplacedSetting(
            ["model", "non_local"], "model.non_local is set, but with model.causal no element sees those behind it"
        )


def check_directions(recipe: "Recipe") -> None:
    """Two directions that are taught apart have to be there, and each has a head for half of the features."""
    if recipe.task == "pretrain" and recipe.train.objective == "bidirectional":
        if "merge" not in type(recipe.model).model_fields:
            raise MisplacedSetting(
                ["train", "objective"],
                f'train.objective "bidirectional" teaches two recurrent directions, but model.kind is '
                f'"{recipe.model.kind}": say "masked", or a recurrent kind',
            )
        if recipe.model.tied:
            raise MisplacedSetting(
                ["model", "tied"],
                'model.tied is set, but with train.objective "bidirectional" the output layer reads half of the '
                "features",
            )


def check_shared_embedding(recipe: "Recipe") -> None:
    """One embedding for both sides: they have the same symbols, each with a vector."""
    if recipe.task == "seq2seq" and recipe.model.shared_embedding:
        data, model = recipe.data, recipe.model
        faults = {
            ("data", "source_type"): data.source_type != "tokens" and "the source is no text",
            ("data", "shared"): not data.shared and "data.shared is false: each side has a vocabulary of its own",
            ("data", "tag"): bool(data.tag) and "a tag has a vector that the target does not",
            ("data", "characters"): bool(data.characters) and "words are composed of characters on each side",
            ("data", "target_vectors"): bool(data.target_vectors) and "data.vectors is what it begins with",
            ("model", "one_hot"): model.one_hot and "with model.one_hot no embedding is learned",
        }
        for setting, why in faults.items():
            if why:
                raise MisplacedSetting(list(setting), f"model.shared_embedding is true, but {why}")


def check_embeddings(recipe: "Recipe") -> None:
    """Segments and the scale are of tokens, and telling whether texts follow each other needs two segments."""
    if recipe.task in LABELERS and recipe.data.source_type != "tokens":
        for name, usual in (("segments", 0), ("scaled_embedding", True)):
            if getattr(recipe.model, name, usual) != usual:
                raise MisplacedSetting(
                    ["model", name],
                    f"model.{name} is set, but data.source_type is {literal(recipe.data.source_type)}: there are no "
                    "tokens",
                )
    if recipe.task == "pretrain" and recipe.train.next_sentence and recipe.model.segments < 2:
        raise MisplacedSetting(
            ["train", "next_sentence"],
            f"train.next_sentence needs two segments, but the body has {recipe.model.segments or 'none'}: "
            "say model.segments=2",
        )


def check_output_layer(recipe: "Recipe") -> None:
    """What changes the output layer goes with the objectives that have such a one."""
    read = {"output_transform": ("masked",), "output_bias": ("masked", "causal", "bidirectional")}
    for name, objectives in read.items() if recipe.task == "pretrain" else ():
        value, objective = getattr(recipe.model, name), recipe.train.objective
        if value != type(recipe.model).model_fields[name].default and objective not in objectives:
            raise MisplacedSetting(
                ["model", name],
                f"model.{name} is {literal(value)}, but train.objective {literal(objective)} does not read it: "
                f"{', '.join(objectives)} {'does' if len(objectives) == 1 else 'do'}",
            )


CHECKS = (
    check_losses,
    check_endings,
    check_lexicon,
    check_nb_svm,
    check_numbers,
    check_spelling,
    check_blocks,
    check_directions,
    check_shared_embedding,
    check_embeddings,
    check_output_layer,
)
