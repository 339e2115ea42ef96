"""A run that can be asked: for answers, texts and scores, what is inside, what ails it. Making one is `train`."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from torch import nn

from ..arguments import check_list, check_path, check_text, check_whole
from ..arrays import Doubles, Floats
from ..config.recipe import Recipe
from ..data.schema import FieldKind
from ..errors import RunError, SearchError
from ..layers.cells import MakeCell
from ..search import Recorder, Tree
from ..tasks.decoding_options import DecodingOptions
from ..tasks.generation import Continuation, Generation, SamplingOptions
from ..tasks.mixture import Mixture
from ..tasks.results import Example, Likelihood, Predictions
from ..tasks.task import Task, TaskData, Writer
from ..training.devices import choose_device
from ..training.files import explain_errors, json_bytes
from ..training.manifests import check_manifest, read_manifest, replace_file
from .asked import accept_inputs, check_files, check_options, pair_texts, split_inputs
from .diagnosis import TRIAL_SECONDS, Diagnosis, diagnose, examine
from .folder import (
    INT8,
    MIXTURE,
    SETTLED,
    WEIGHTS,
    check_version,
    read_config,
    read_recipe,
    read_scores,
    read_task,
)
from .following import Follower
from .json_output import make_score_report
from .training import train
from .weights import load_mixture, load_model

if TYPE_CHECKING:
    from ..look import Look
    from ..look.history import History
    from ..look.measures.probes import Probe
    from ..tasks.filling import FilledBlank
    from .embedding import Lexicon, WordVectors
    from .ordering import PairScores

__all__ = ["Run", "diagnose", "load", "train"]


class Run:
    """A trained run: predictions, texts, scores and charts."""

    model: Any  # a Labeler or a Generator, as the task has it

    def __init__(self, folder: Path, task: Task, net: nn.Module, mixture: "Mixture | None" = None) -> None:
        self.folder, self.task, self.mixture = folder, task, mixture
        self.use(net)
        self._data: tuple[object, TaskData] | None = None  # the training data, and the examples it was prepared from

    def use(self, net: Any) -> None:
        """Answer with this net, and with what is mixed into it: the net alone is what is looked into and exported."""
        self.net = net
        self.model = net if self.mixture is None else self.mixture.wrap(net)

    def drop_mixture(self) -> list[str]:
        """Answer with the net alone, for forms that hold nothing else; what that leaves out, in a sentence."""
        if self.mixture is None:
            return []
        left, self.mixture = " and ".join(self.mixture.settings), None
        self.use(self.net)
        return [f"{left}: what is mixed in is left out; these are the answers of the network alone"]

    @property
    def recipe(self) -> Recipe:
        return self.task.recipe

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.recipe.task} by {self.recipe.model.kind})"

    @overload
    def predict(self, raw: str, beam: int | None = None) -> Predictions: ...

    @overload
    def predict(self, raw: Any, beam: int | None = None) -> Any: ...

    def predict(self, raw: Any, beam: int | None = None) -> Any:
        """The best answers to one input, best first; to several, a list of such.

        One input is what the run was trained on: a text, an array, an image as an array, a PIL image or a file's name.
        Several are a list, a column or the rows of a data frame (by the columns of the run), an array with one axis
        more, or a `Path` of any file that `seqloom predict --file` reads.
        """
        if (several := split_inputs(self.task, raw)) is not None:
            return self.predict_many(several, beam)
        [answers] = self.predict_many([raw], beam)
        return answers

    def predict_proba(self, raw: Any) -> Doubles:
        """The probability of every class for every input, (N, classes), in the order of `classes`.

        Where an input may have several labels at once, each is by itself and a row does not add up to 1.
        """
        several = split_inputs(self.task, raw)
        inputs = self._accept([raw] if several is None else several)
        self.check_classes()
        return self.task.shape.probabilities(self.model, inputs)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, if the answer to an input is one or several of them."""
        return self.task.shape.classes

    def check_classes(self) -> tuple[str, ...]:
        """The classes, of a run that has some."""
        if not self.classes:
            raise RunError(f"{self.folder}: a run whose task is {self.recipe.task} has no classes of whole inputs")
        return self.classes

    def predict_many(self, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The best answers to each input."""
        beam = None if beam is None else check_whole("the beam size", beam, 1)
        return self.task.shape.predict(self.model, self._accept(inputs), beam)

    def _accept(self, inputs: Sequence[Any]) -> list[Any]:
        """Inputs from Python; one that the task cannot read is refused here, with what it reads."""
        return accept_inputs(self.task, check_list("the inputs", inputs))

    def answer(self, inputs: Sequence[Any], options: DecodingOptions) -> list[Predictions]:
        """The answers to each input of a task that writes them, searched for in any way: by a beam, or drawn."""
        return self.answer_accepted(self._accept(inputs), None, check_options(options))

    def answer_accepted(
        self, inputs: list[Any], beam: int | None = None, options: DecodingOptions | None = None
    ) -> list[Predictions]:
        """The answers to inputs that the task has accepted already."""
        if options is None:
            return self.task.shape.predict(self.model, inputs, beam)
        return self._answerer.answer(self.model, inputs, options)

    def stream(self, raw: Any, options: DecodingOptions | None = None) -> Iterator[str]:
        """The answer to one input piece by piece, as it is written; stop iterating, and nothing more is done."""
        return self._answerer.stream(
            self.model, self.task.shape.accept_input(raw), check_options(options or DecodingOptions(1))
        )

    def follow(self) -> Follower:
        """The run, to be fed piece by piece: a tagger, a language model or a forecaster that does not look ahead. Its
        answers are those of `predict` on all that it has read."""
        return Follower(self)

    @property
    def _answerer(self) -> Any:
        if not self.task.shape.answers_in_text:
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} does not generate its answers, so "
                "decoding options do not apply"
            )
        return self.task.shape

    def generate(
        self,
        prompt: str = "",
        options: SamplingOptions | None = None,
        recorder: Recorder | None = None,
        **changes: Any,
    ) -> Generation:
        """Texts that begin with `prompt`: iterate for pieces as they come, or `finish()` for all of them whole.

        What is changed in the options may be named alone: `generate("X:1", temperature=0.8, count=3, seed=1)`. With
        `beam_size`, they are the best that a beam finds, best first; a `recorder` then holds the tree of the search.
        """
        options, writer = (options or SamplingOptions()).changed(changes), self._writer
        prompt = check_text("the beginning", prompt)
        if not options.beam_size:
            if recorder is not None:
                raise SearchError("a recorder needs a beam search: give beam_size")
            return writer.generate(self.model, prompt, options)
        if not hasattr(writer, "search"):
            raise SearchError("beam search is for texts, but this run does not generate text")
        return writer.search(self.model, prompt, options, recorder)

    def fill(self, raw: str, count: int = 5) -> "list[list[FilledBlank]]":
        """For each blank of a text (two or more underscores) the likeliest words with their probabilities."""
        if not hasattr(self.task.shape, "fill"):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} has no blanks to fill: seqloom train pretrain "
                "makes one that has, unless train.objective is causal"
            )
        return self.task.shape.fill(self.model, check_text("the text", raw), check_whole("count", count, 1))

    def embed(self, texts: str | Sequence[str], layer: int | None = None) -> Floats:
        """A vector for a text (D,), or one for each of several (N, D): the mean of what a layer knows of its tokens,
        the last layer if none is given; 0 is the embedding."""
        from .embedding import Embedder

        embedder = Embedder(self, layer)
        return embedder.texts([texts])[0] if isinstance(texts, str) else embedder.texts(list(texts))

    def embed_words(self, text: str, layer: int | None = None) -> "WordVectors":
        """The words of a text and a vector for each, the mean of its tokens."""
        from .embedding import Embedder

        return Embedder(self, layer).words([text])[0]

    @property
    def lexicon(self) -> "Lexicon":
        """The words of the vocabulary by their vectors: `nearest`, `analogy`."""
        from .embedding import Lexicon

        return Lexicon(self)

    def check(self, texts: Sequence[Continuation]) -> dict[str, Any]:
        """Shares of what was generated: how much ends, is well formed, and stands in the training texts.

        The last only where those are still at hand: a run holds no examples.
        """
        from .report import read_training_texts

        return self._writer.check(texts, read_training_texts(self.folder, self.task))

    def keep(self, texts: Sequence[Continuation], folder: Path | str) -> list[str]:
        """Write what was generated into a folder, as files that a person can use; a line about each."""
        writer, folder = self._writer, check_path("the folder", folder)
        with explain_errors(folder, "cannot be written into"):
            folder.mkdir(parents=True, exist_ok=True)
            return list(writer.save(texts, folder))

    @property
    def _writer(self) -> Writer:
        if (writer := self.task.writer) is None:
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} answers what it is asked: seqloom predict; "
                "only language and music are written freely, and images drawn"
            )
        return writer

    def score(self, *files: Path | str) -> dict[str, Any]:
        """Scores on a file of one's own (or two parallel ones), each with its baselines."""
        examples = self.task.shape.read_files(check_files(files))
        scores = self.task.score(self.model, examples)
        return make_score_report(self.folder, self.task, " ".join(map(str, files)), examples, scores)

    def score_texts(self, texts: Sequence[str], given: Any = None) -> list[Likelihood]:
        """How probable texts are to a run that writes or tags: log-probability and perplexity, token by token.

        What is `given` is the source of an answer, the beginning before a text, or the words of tags: one for all texts
        or a list with one for each. Words with their tags, as `predict` gives them, need none.
        """
        if not hasattr(self.task.shape, "measure_likelihoods"):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} gives no sequence a probability; those that "
                "write texts token by token do, and those that tag"
            )
        return self.task.shape.measure_likelihoods(self.model, pair_texts(texts, given))

    @cached_property
    def scores(self) -> dict[str, Any]:
        """The scores on the test part that the run ended with."""
        if scores := read_scores(self.folder):
            return scores
        raise RunError(
            f"{self.folder}: has no final scores yet; continue with: seqloom train --into {self.folder} --resume"
        )

    def look(self, raw: Any = None, answer: str | None = None, *, examples: object = None) -> "Look":
        """What happens inside while the model answers this input, or is given this answer.

        Without an input, the first of the run's own test part; `examples` are needed again if they came from Python.
        """
        from .looking import look_into

        return look_into(self, raw, answer, examples)

    def probe(self, inputs: Sequence[Any], labels: Sequence[Any]) -> "list[Probe]":
        """How well a linear probe of each layer finds labels of one's own, on inputs that it was not fitted on.

        The labels of an input are one for all of it, or one for each of its elements.
        """
        from .probing import probe_layers

        return probe_layers(self, check_list("the inputs", inputs), check_list("the labels", labels))

    def score_shuffled(self, *files: Path | str, seed: int = 0) -> dict[str, Any]:
        """Every score with what is read in order and with its words shuffled, on files or on the run's test part."""
        from .ordering import score_shuffled

        examples, part = self._examples(files, "test")
        scores = score_shuffled(self, examples, check_whole("the seed", seed))
        return {"run": str(self.folder), "split": part, "examples": len(examples), "scores": scores}

    def score_meteor(self, *files: Path | str) -> dict[str, Any]:
        """METEOR of a run that writes texts, on files or on its test part, beside its baselines."""
        from ..metrics.meteor import load_wordnet, meteor

        _ = self._answerer, load_wordnet()  # said before anything is written
        examples, part = self._examples(files, "test")
        declaration = replace(self.task.declaration, metrics=lambda task: {"METEOR": meteor}, more_scores=None)
        task = Task(declaration, self.recipe, self.task.fields, self.task.facts)
        return make_score_report(self.folder, task, part, examples, task.score(self.model, examples))

    def score_pairs(self, pairs: Sequence[tuple[str, str]], given: Sequence[Any] | None = None) -> "PairScores":
        """Minimal pairs: how often the first text of two is more probable to the run or, of a run that classifies, how
        often it answers the two differently. `given` is the source of each pair, where there is one."""
        from .ordering import score_pairs

        return score_pairs(self, check_list("the pairs", pairs), given)

    def _examples(self, files: Sequence[Path | str], part: str) -> tuple[Sequence[Any], str]:
        """The examples of files, or of a part of the run's own data, and what to call them."""
        if files:
            return self.task.shape.read_files(check_files(files)), " ".join(map(str, files))
        return self.task.shape.examples(self.read_own_data(), part), part

    def report(self, path: Path | str, raw: Any = None, answer: str | None = None, *, examples: object = None) -> Path:
        """One page about all of it, as a file that needs no network; looked into on this input, or one of its own."""
        from .looking import write_report

        path = check_path("the page", path)  # before the minutes that a page takes
        return write_report(self, path, self.look(raw, answer, examples=examples), examples)

    @cached_property
    def history(self) -> "History":
        """What the run remembers of its training."""
        from .looking import read_history

        return read_history(self.folder, self.recipe)

    def read_own_data(self, examples: object = None) -> TaskData:
        """The examples that the run was trained on, read again once; those from Python have to be given again."""
        from .report import prepare_own_data

        if self._data is None or self._data[0] is not examples:
            self._data = examples, prepare_own_data(self.folder, self.task, examples)
        return self._data[1]

    def pick_examples(self, at_most: int, examples: object = None) -> tuple[str, list[Example]]:
        """Some examples of the test part, or else of the validation part, which is named; as they are asked."""
        from .report import pick_examples

        return pick_examples(self.task, self.read_own_data(examples), at_most)

    def record_beam(self, raw: Any, beam: int | None = None) -> Tree:
        """The beam search for the answer to one input, step by step."""
        recorder = Recorder()
        self.task.shape.record_search(self.model, self.task.shape.accept_input(raw), beam, recorder)
        return recorder.trees[0]

    def quantize(self, *files: Path | str) -> dict[str, Any]:
        """Scores with weights of eight bits beside those with all of them, on files or on the validation part.

        They are kept in the run folder; afterwards this run goes on with eight bits.
        """
        from .quantizing import score_quantized

        examples, part = self._examples(files, "validation")
        result = {"run": str(self.folder), "split": part, "examples": len(examples)} | score_quantized(self, examples)
        replace_file(self.folder, INT8, json_bytes(result))
        return result

    def diagnose(self, examples: object = None, seconds: float = TRIAL_SECONDS) -> "Diagnosis":
        """What ails the model, the worst first: see `diagnose`."""
        return examine(self.folder, self.task, deepcopy(self.net).cpu(), partial(self.read_own_data, examples), seconds)


def load(
    folder: Path | str,
    cell: MakeCell | None = None,
    device: str = "auto",
    int8: bool = False,
    fields: Mapping[str, FieldKind] | None = None,
) -> Run:
    """A run from its folder; it needs neither the data nor the network. Nothing in the folder is run.

    A run that was trained with a cell or fields of one's own needs them again. The `device`, as `train.device` has
    them, need not be the one it was trained on. With `int8`, it answers with weights of eight bits: less exact, quicker
    where it writes token by token, and no quicker where it labels; `Run.quantize` measures both.
    """
    folder = check_path("the run folder", folder)
    check_version(folder)
    if WEIGHTS not in read_manifest(folder):
        raise RunError(f"{folder}: has no trained model yet; continue with: seqloom train --into {folder} --resume")
    sums = check_manifest(folder, SETTLED, later=[WEIGHTS, *([MIXTURE] if MIXTURE in read_manifest(folder) else [])])
    task = read_task(folder, read_recipe(folder), cell, fields)
    if read_config(folder).vocabularies != task.sizes():
        raise RunError(f"{folder}: the vocabularies in task.json are not of the sizes that config.json says")
    model = load_model(folder, task, sums).to(choose_device(device)).eval()
    run = Run(folder, task, model, load_mixture(folder, task, sums))
    if int8:
        from .quantizing import quantize_model

        run.use(quantize_model(run, run.net))
    return run
