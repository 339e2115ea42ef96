"""A shape: a sequence of symbols is written about a source, token by token. Translations, captions, drawings."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures.build import build_seq2seq
from ..config.recipe import Recipe
from ..data import batching
from ..data.formats.tables import SkippedRows
from ..data.inputs import InputFile, InputReading, read_inputs
from ..data.vocabulary import END, SPECIALS, START, UNKNOWN
from ..errors import DataError, SearchError
from ..fields import Prediction, SymbolField
from ..layers.padding import lengths_to_mask
from ..layers.state import State, repeat
from ..models import Batch, Generator, device_of
from ..search import (
    BeamOptions,
    Constraint,
    Hypothesis,
    Patience,
    Pieces,
    Recorder,
    Sampling,
    Stop,
    beam,
    choose_likeliest,
    score,
    stream,
    write,
)
from ..search.base import score_of
from ..search.choosing import Choose, seeds_of
from .decoding_options import DecodingOptions, Rules
from .results import Inspection, Likelihood, Predictions, ScoreWithBaselines
from .scoring import score_answers
from .shape import (
    QUICK,
    ROOM,
    Encoded,
    Shape,
    check_attention_window,
    check_length,
    check_positions,
    count_positions,
    group_references,
)
from .source_input import SourceInput

AT_ONCE = 16  # tokens of an answer that are scored together


class ConditionalGeneration(Shape):
    searches = True

    @property
    def target(self) -> SymbolField:
        return self.task.target

    @property
    def answers_in_text(self) -> bool:  # type: ignore[override]
        return self.target.is_text

    @property
    def inputs(self) -> SourceInput:
        return SourceInput(self.task)

    # --- training ---

    def settle(self, prepared: Any) -> Recipe:
        """Set the maximum output length from the training examples."""
        recipe, train, decoder = self.recipe, prepared.splits["train"].ids, self.recipe.model.side("decoder")
        check_positions("encoder", recipe.model.side("encoder"), self.inputs.lengths(train), ahead=True)
        written = train["target"].lengths
        check_positions("decoder", decoder, written + 1)
        check_attention_window(decoder, self.inputs.lengths(train), written)
        if recipe.search.max_length:
            return recipe
        return recipe.changed("search.max_length", min(2 * int(written.max()) + 10, count_positions(decoder)))

    def build(self) -> Generator:
        model, target = self.recipe.model, self.target
        embed, head = partial(target.embedding, model, "decoder"), partial(target.head, recipe=self.recipe)
        return build_seq2seq(model, self.inputs.embedding(), embed, head, self.task.cell)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        """The lengths of source and target, the end token included."""
        return np.stack([self.inputs.lengths(encoded), encoded["target"].lengths + 1], 1)

    def collate(self, encoded: Encoded, rows: Any) -> Batch:
        """The start goes in front of what the decoder reads, the end behind what it is to predict."""
        tokens, lengths = map(torch.from_numpy, encoded["target"].pad(rows))
        framed = tokens.new_zeros(len(tokens), tokens.shape[1] + 2)
        framed[:, 0], framed[:, 1:-1] = START, tokens
        framed[torch.arange(len(tokens)), lengths + 1] = END
        mask = lengths_to_mask(lengths + 2, framed.shape[1])
        return Batch.from_sequence(framed, mask, self.inputs.collate(encoded, rows))

    def validate(self, model: Generator, prepared: Any) -> dict[str, float]:
        part = prepared.splits["validation"]
        scores = {"loss": self.loss(model, part.ids)}
        if self.answers_in_text:
            # From all over the part: files are often sorted, and the words in A are not like the others.
            rows = np.linspace(0, len(part), min(QUICK, len(part)), endpoint=False).astype(int).tolist()
            inputs = [self.input_of([raw[row] for raw in part.raws.values()]) for row in rows]
            # A score is not a matter of how busy a machine is: there is no limit of time.
            answers, targets = self.answer(model, inputs, DecodingOptions(1, timeout=0)), part.raws["target"]
            right = sum(best.output == targets[row] for row, (best, *_) in zip(rows, answers, strict=True))
            scores["exact"] = right / max(len(rows), 1)
        return scores

    def score(self, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        """Inputs that stand on several lines have several right answers."""
        declared = self.task.declaration
        if not (metrics := declared.metrics(self.task)):
            return {}
        inputs, references = group_references(self, examples)
        encoded = self.inputs.encode(inputs)
        options = DecodingOptions(self.recipe.search.beam_size, timeout=0)
        answers = [best.output for best, *_ in self.answer_encoded(model, encoded, options)]
        baselines = declared.baselines(self.task, [self.inputs.source_of(raw) for raw in inputs])
        lengths = self.source.lengths(encoded["source"], self.recipe.model)
        return score_answers(metrics, answers, references, baselines, lengths)

    # --- inputs ---

    def input_of(self, example: Sequence[Any]) -> Any:
        tag = self.side_of(example, "tag") if "tag" in self.task.fields else None
        return self.inputs.from_sides(self.side_of(example, "source"), tag)

    def accept_input(self, raw: Any) -> Any:
        return self.inputs.accept(raw)

    def read_inputs(self, file: str, reading: InputReading, skipped: SkippedRows) -> InputFile:
        """With the tag beside its source where the model was trained with tags, unless a person says one."""
        tagged = ["tag"] if "tag" in self.task.fields and not reading.tagged else []
        return read_inputs(file, self.task.schema.only("source", *tagged), reading, skipped)

    def cut(self, encoded: Encoded) -> Encoded:
        """As much of the sources as is read; refused where a model has not learned so many positions."""
        cut = encoded | {"source": encoded["source"].cut(self.most)}
        check_length(self.inputs.lengths(cut), self.recipe.model.side("encoder"))
        return cut

    # --- answers ---

    def predict(self, model: Generator, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        return self.answer(model, inputs, DecodingOptions(beam or self.recipe.search.beam_size))

    def answer(self, model: Generator, inputs: Sequence[Any], options: DecodingOptions) -> list[Predictions]:
        """The answers to each input, best first, searched for as asked."""
        return self.answer_encoded(model, self.inputs.encode(inputs), options)

    def answer_encoded(self, model: Generator, encoded: Encoded, options: DecodingOptions) -> list[Predictions]:
        results = zip(self.search(model, encoded, options), self.unread(encoded["source"]), strict=True)
        return [
            Predictions([self.prediction(one, options, seconds) for one in hypotheses], unread)
            for (hypotheses, seconds), unread in results
        ]

    def prediction(self, hypothesis: Hypothesis, options: DecodingOptions, seconds: float) -> Prediction:
        return self.target.read_hypothesis(hypothesis, options.rules.stop, seconds)

    @torch.no_grad()
    def measure_likelihoods(self, model: Generator, pairs: Sequence[tuple[Any, str]]) -> list[Likelihood]:
        """How probable answers are, each to its input, with their end."""
        if not self.answers_in_text:
            raise DataError("only texts are scored, but what this run writes is none")
        if any(given is None for given, _ in pairs):
            raise DataError("an answer is scored beside what it answers: give its source (--given)")
        encoded = self.cut(self.inputs.encode([self.accept_input(given) for given, _ in pairs]))
        ids = self.target.encode_many([text for _, text in pairs])
        likelihoods: list[Likelihood] = [Likelihood("", [], [])] * len(pairs)
        for rows in batching.plan_scoring(self.lengths(encoded | {"target": ids}), ROOM):
            last, state = self.begin(model, encoded, rows)
            known = score(model, last, state, [ids[row].tolist() for row in rows], end=END, piece=AT_ONCE)
            for row, one in zip(rows, known, strict=True):
                names = [*self.target.names(one.tokens), SPECIALS[END]]
                likelihoods[row] = Likelihood(pairs[row][1], names, one.logs, one.tokens.count(UNKNOWN))
        return likelihoods

    def record_search(self, model: Generator, raw: Any, beam: int | None, recorder: Recorder) -> None:
        """Let a recorder watch the beam search for the answer to one input."""
        options = DecodingOptions(self.recipe.search.beam_size if beam is None else beam)
        self.search(model, self.inputs.encode([raw]), options, recorder)

    @torch.no_grad()
    def search(
        self, model: Generator, encoded: Encoded, options: DecodingOptions, recorder: Recorder | None = None
    ) -> list[tuple[list[Hypothesis], float]]:
        """What is found for each input, best first, and the seconds that it took with the inputs beside it."""
        encoded = self.cut(encoded)
        answers: list[tuple[list[Hypothesis], float]] = [([], 0.0) for _ in range(len(encoded["source"]))]
        for rows in batching.plan_scoring(self.inputs.lengths(encoded), ROOM // max(options.beam_size, options.count)):
            start = perf_counter()
            groups = self.search_rows(model, encoded, rows, options, recorder)
            seconds = perf_counter() - start
            for row, hypotheses in zip(rows, groups, strict=True):
                answers[row] = hypotheses, seconds
        return answers

    def search_rows(
        self, model: Generator, encoded: Encoded, rows: Any, options: DecodingOptions, recorder: Recorder | None
    ) -> list[list[Hypothesis]]:
        limits, each = self.target.limits(self.recipe), options.count if options.sampling is not None else 1
        steps = options.max_length or limits.steps
        last, state = self.begin(model, encoded, rows)
        rules, stops = self.rules(options, each * len(rows), steps)
        constraints, patience = [*limits.constraints, *rules], self.patience(options, each * len(rows))
        penalty = self.recipe.search.length_penalty if options.length_penalty is None else options.length_penalty
        if options.sampling is None and (options.beam_size > 1 or recorder is not None):
            return beam(
                model.stepper(),
                last,
                state,
                BeamOptions(
                    beam_size=options.beam_size,
                    steps=steps,
                    end=limits.end,
                    length_penalty=penalty,
                    groups=options.groups,
                    diversity=options.diversity,
                    best=options.best,
                    constraints=constraints,
                    stops=stops,
                    meaning=self.target.meaning(options.rules.stop),
                ),
                recorder=recorder,
                patience=patience,
            )
        hypotheses = write(
            model.stepper(),
            choose_likeliest if options.sampling is None else draw_each(options.sampling, each, len(rows)),
            last.repeat_interleave(each, 0),
            repeat(state, each) if each > 1 else state,
            steps=steps,
            end=limits.end,
            constraints=constraints,
            stops=stops,
            alternatives=options.alternatives,
            patience=patience,
        )
        hypotheses = [one._replace(score=score_of(sum(one.logs), len(one.logs), penalty)) for one in hypotheses]
        groups = [hypotheses[start : start + each] for start in range(0, len(hypotheses), each)]
        return [sorted(group, key=lambda one: -one.score) for group in groups]

    def stream(self, model: Generator, raw: Any, options: DecodingOptions) -> Iterator[str]:
        """The answer to one input as it is written: the likeliest token each time, or drawn."""
        limits = self.target.limits(self.recipe)
        steps = options.max_length or limits.steps
        with torch.no_grad():
            last, state = self.begin(model, self.cut(self.inputs.encode([raw])), [0])
        text, (rules, stops) = Pieces(self.target.decode, options.rules.stop), self.rules(options, 1, steps)
        for [pick] in stream(
            model.stepper(),
            choose_likeliest if options.sampling is None else draw_each(options.sampling, 1, 1),
            last,
            state,
            steps=steps,
            end=limits.end,
            constraints=[*limits.constraints, *rules],
            stops=stops,
            patience=self.patience(options, 1),
        ):
            if pick.finish != "end" and (piece := text.add(pick.token)):
                yield piece
        if rest := text.finish():
            yield rest

    def begin(self, model: Generator, encoded: Encoded, rows: Any) -> tuple[torch.Tensor, State]:
        """Where a search begins: the start, and the state of a decoder that has the sources before it."""
        state = model.initial_state(len(rows), *self.inputs.collate(encoded, rows))
        return torch.full((len(rows), 1), START, device=device_of(model)), state

    def rules(self, options: DecodingOptions, rows: int, steps: int) -> tuple[list[Constraint], list[Stop]]:
        """What a person's rules come to, for so many rows."""
        if not self.answers_in_text:
            if options.rules != Rules():
                raise SearchError("rules about texts are for tasks that write texts")
            return [], []
        rules = options.rules
        allowed = replace(rules, allow_unknown=rules.allow_unknown or self.recipe.search.allow_unknown)
        return allowed.constraints(self.task.target, rows, steps), allowed.stops(self.task.target)

    def patience(self, options: DecodingOptions, answers: int) -> Patience:
        """So many answers at once may take as long as one after the other."""
        return Patience(answers * (self.recipe.search.timeout if options.timeout is None else options.timeout))

    def inspect(self, raw: Any, answer: str) -> Inspection:
        target = self.target
        encoded = self.cut(self.inputs.encode([raw])) | {"target": target.encode_many([target.parse(answer)])}
        return Inspection(
            self.collate(encoded, [0]),
            self.inputs.element_names(raw, encoded),
            [*target.names(encoded["target"][0]), "<eos>"],
            self.inputs.symbols,
            target.symbols,
            self.source.picture(self.inputs.source_of(raw)),
        )


def draw_each(sampling: Sampling, each: int, rows: int) -> Choose:
    """So many draws for each row; what they are does not depend on the rows beside it."""
    assert isinstance(sampling.seed, int)
    seeds: list[int] = seeds_of(sampling.seed, each).tolist()
    return replace(sampling, seed=seeds * rows).choose(each * rows)
