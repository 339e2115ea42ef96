"""Options that several commands have, declared once: single ones, and groups of them as dataclasses.

A command takes a group as one parameter; `expand_groups` turns it into the options that a person types.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ..search import Sampling
    from ..tasks.decoding_options import Rules

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")]


@dataclass(frozen=True)
class InputOptions:
    """Inputs of `predict`."""

    inputs: Annotated[
        list[str] | None, typer.Argument(help="Texts, or names of images; none means --file or standard input.")
    ] = None
    file: Annotated[
        list[str] | None,
        typer.Option(
            help="A file or folder of inputs in any format that training reads, tables by the columns of the run, or a "
            "pattern of names; repeat for more; - is standard input."
        ),
    ] = None
    source: Annotated[
        list[str] | None, typer.Option(help="A column of the table to read instead of the run's; repeat for more.")
    ] = None
    format: Annotated[
        str, typer.Option(help="The format of --file, where its ending does not say: csv, tsv, jsonl, txt …")
    ] = ""
    on_bad_row: Annotated[
        str, typer.Option(help="For a bad row: error or skip; data.on_bad_row of the run if not given.")
    ] = ""
    tag: Annotated[
        str | None, typer.Option(help="The language or style to write, for a model trained with data.tag.")
    ] = None


@dataclass(frozen=True)
class TableOptions:
    """The table that `predict` writes."""

    out: Annotated[
        Path | None,
        typer.Option(help="Write a table: the columns of the input and the answers. .csv .tsv .jsonl .parquet"),
    ] = None
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="With --out: a column for the probability of every class.")
    ] = False


@dataclass(frozen=True)
class TextOptions:
    """The prompt, length and number of generated texts."""

    prompt: Annotated[str, typer.Option(help="The prompt; for draw, the name of what is drawn.")] = ""
    length: Annotated[int, typer.Option(min=1, help="Maximum number of tokens.")] = 400
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Number of texts.")] = 1


@dataclass(frozen=True)
class WritingOptions:
    """Output, time limit and weights of a generation."""

    alternatives: Annotated[
        int, typer.Option(min=0, max=100, help="With --json: this many alternative tokens at each step.")
    ] = 0
    timeout: Annotated[float | None, typer.Option(min=0, help="Time limit of a text in seconds; 0 is none.")] = None
    int8: Annotated[bool, typer.Option("--int8", help="Use 8-bit weights: less exact, faster in generation.")] = False
    stream: Annotated[bool, typer.Option("--stream", help="Print each text as it is generated.")] = False


@dataclass(frozen=True)
class SamplingOptions:
    """Sampling."""

    temperature: Annotated[
        float, typer.Option(min=0, help="Sampling temperature: below 1 sharpens, above 1 flattens, 0 is greedy.")
    ] = 1.0
    top_k: Annotated[int, typer.Option(min=0, help="Draw from this many of the most probable tokens; 0 is all.")] = 0
    top_p: Annotated[
        float,
        typer.Option(min=0, max=1, help="Draw from the most probable tokens that together have this probability."),
    ] = 1.0
    min_p: Annotated[
        float,
        typer.Option(min=0, max=1, help="Draw from tokens with at least this share of the best one's probability."),
    ] = 0.0
    seed: Annotated[int, typer.Option(help="Random seed: the same seed gives the same texts.")] = 0

    def sampling(self) -> "Sampling":
        from ..search import Sampling

        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.seed)


@dataclass(frozen=True)
class RuleOptions:
    """Constraints on generated text."""

    ban: Annotated[list[str] | None, typer.Option(help="Never generate this text; repeat for more.")] = None
    require: Annotated[
        list[str] | None, typer.Option(help="A token that the output must contain; repeat for more.")
    ] = None
    prefix: Annotated[str, typer.Option(help="The output begins with this text.")] = ""
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text; repeat for more.")] = None
    no_repeat: Annotated[
        int, typer.Option(min=0, help="No sequence of this many tokens is generated twice; 0 is no limit.")
    ] = 0
    repetition_penalty: Annotated[
        float, typer.Option(min=1, help="Penalty on tokens that were already generated; 1 is none.")
    ] = 1.0
    min_length: Annotated[int, typer.Option(min=0, help="Minimum number of tokens.")] = 0
    allow_unknown: Annotated[
        bool,
        typer.Option("--allow-unknown", help="Allow <unk> in the output, the token for what is not in the vocabulary."),
    ] = False

    def rules(self) -> "Rules":
        from ..tasks.decoding_options import Rules

        words = self.ban or (), self.require or (), self.prefix, self.stop or ()
        return Rules(*words, self.no_repeat, self.repetition_penalty, self.min_length, self.allow_unknown)


@dataclass(frozen=True)
class BeamOptions:
    """Beam search."""

    beam: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Beam size: how many hypotheses are kept, and shown.")
    ] = None
    best: Annotated[int, typer.Option(min=0, help="Number of answers to show; 0 is all that are kept.")] = 0
    groups: Annotated[int, typer.Option(min=1, help="Split the beam into groups that avoid each other's tokens.")] = 1
    diversity: Annotated[float, typer.Option(min=0, help="How strongly groups avoid each other's tokens.")] = 0.5
    length_penalty: Annotated[
        float | None, typer.Option(min=0, help="Scores are divided by the length to this power.")
    ] = None


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a group of options replaced by those options."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        if name not in groups:
            parameters.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(option.name, one.KEYWORD_ONLY, default=option.default, annotation=hints[option.name])
            for option in fields(groups[name])
        ]

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in fields(group)})
        command(**values)

    expanded.__dict__["__signature__"] = signature.replace(parameters=parameters)
    expanded.__annotations__ = {one.name: one.annotation for one in parameters}
    return expanded
