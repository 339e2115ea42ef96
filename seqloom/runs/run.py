"""A run that can be asked: for answers, texts and scores, what is inside, what ails it. Making one is `train`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

from torch import nn

from ..arguments import check_list, check_text, check_whole, describe_value
from ..arguments import check_path as path_of
from ..arrays import Doubles, Floats
from ..config.recipe import Recipe
from ..config.tasks import USES
from ..data.formats.tables import Skipped, drop_faults
from ..data.schema import FieldKind
from ..data.vocabulary import NEVER_WRITTEN
from ..errors import DataError, RunError, SearchError, SeqloomError
from ..layers.cells import MakeCell
from ..models import Batch, device_of
from ..search import Recorder, Tree
from ..tasks.decoding_options import DecodingOptions
from ..tasks.generation import Continuation, Generation, SamplingOptions
from ..tasks.mixture import Mixture
from ..tasks.results import Example, Likelihood, Predictions
from ..tasks.task import Prepared, Task, Writer
from ..training.devices import choose_device
from ..training.files import explain_errors, json_bytes
from ..training.manifests import check_manifest, read_checked, read_manifest, replace_file
from ..training.tensors import Allowance, count_max_bytes, count_tensors, load_weights, parse_tensors
from .folder import (
    INT8,
    MIXTURE,
    RECORDS,
    SETTLED,
    WEIGHTS,
    check_version,
    read_config,
    read_recipe,
    read_records,
    read_report,
    read_scores,
    read_task,
)
from .following import Follower
from .json_output import drop_undefined
from .pipeline import make_score_report, train

if TYPE_CHECKING:
    from ..look import Look
    from ..look.doctor.findings import Finding
    from ..look.history import History
    from ..look.measures.probes import Probe
    from ..tasks.filling import Filled
    from .embedding import Lexicon, WordVectors
    from .ordering import PairScores

__all__ = ["Run", "diagnose", "load", "train"]

EXTRA_NUMBERS = 1 << 24  # numbers that a model may have which are not in its weights, such as tables of positions
BATCHES = 4  # of training examples, for what needs many
TRIAL_SECONDS = 15.0  # seconds that the trials of a diagnosis may take


class Run:
    """A trained run, ready to be asked."""

    model: Any  # a Labeler or a Generator, as the task has it

    def __init__(self, folder: Path, task: Task, net: nn.Module, mixture: "Mixture | None" = None) -> None:
        self.folder, self.task, self.mixture = folder, task, mixture
        self.use(net)
        self._data: tuple[object, Prepared] | None = None  # the training data, and the examples it was prepared from

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
    def predict(self, given: str, beam: int | None = None) -> Predictions: ...

    @overload
    def predict(self, given: Any, beam: int | None = None) -> Any: ...

    def predict(self, given: Any, beam: int | None = None) -> Any:
        """The best answers to one input, best first; to several, a list of such.

        One input is what the run was trained on: a text, an array, an image as an array, a PIL image or a file's name.
        Several are a list, a column or the rows of a data frame (by the columns of the run), an array with one axis
        more, or a `Path` of any file that `seqloom predict --file` reads.
        """
        several = self._split(given)
        if several is not None:
            return self.predict_many(several, beam)
        [answers] = self.predict_many([given], beam)
        return answers

    def predict_proba(self, given: Any) -> Doubles:
        """The probability of every class for every input, (N, classes), in the order of `classes`.

        Where an input may have several labels at once, each is by itself and a row does not add up to 1.
        """
        several = self._split(given)
        inputs = self._accepted([given] if several is None else several)
        self.check_classes()
        return self.task.shape.probabilities(self.model, inputs)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, if the answer to an input is one or several of them."""
        return self.task.classes

    def check_classes(self) -> tuple[str, ...]:
        """The classes, of a run that has some."""
        if not self.classes:
            raise RunError(f"{self.folder}: a run whose task is {self.recipe.task} has no classes of whole inputs")
        return self.classes

    def _split(self, given: Any) -> list[Any] | None:
        """Several inputs from Python one by one; None if it is one."""
        if isinstance(given, Path) and not self.task.reads_file(given):
            faulty, skip = Skipped(), self.recipe.data.on_bad_row == "skip"
            found = self.task.read_inputs(str(given), skipped=faulty).inputs
            return [one.value for one in drop_faults(found, str(given), skip, faulty, "inputs")]
        return self.task.split_inputs(given)

    def predict_many(self, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The best answers to each input."""
        beam = None if beam is None else check_whole("the beam size", beam, 1)
        return self.task.predict(self.model, self._accepted(inputs), beam)

    def _accepted(self, inputs: Sequence[Any]) -> list[Any]:
        """Inputs from Python; one that the task cannot read is refused here, with what it reads."""
        return [self.task.accept_input(given) for given in check_list("the inputs", inputs)]

    def answer(self, inputs: Sequence[Any], options: DecodingOptions) -> list[Predictions]:
        """The answers to each input of a task that writes them, searched for in any way: by a beam, or drawn."""
        return self.answer_accepted(self._accepted(inputs), None, check_options(options))

    def answer_accepted(
        self, inputs: list[Any], beam: int | None = None, options: DecodingOptions | None = None
    ) -> list[Predictions]:
        """The answers to inputs that the task has accepted already."""
        if options is None:
            return self.task.predict(self.model, inputs, beam)
        return self._answerer.answer(self.model, inputs, options)

    def stream(self, given: Any, options: DecodingOptions | None = None) -> Iterator[str]:
        """The answer to one input piece by piece, as it is written; stop iterating, and nothing more is done."""
        return self._answerer.stream(
            self.model, self.task.accept_input(given), check_options(options or DecodingOptions(1))
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
        known = [field.name for field in fields(SamplingOptions)]
        for name in changes.keys() - set(known):
            raise SearchError(f"there is no option {name!r} of generating; there are {', '.join(known)}")
        options, writer = replace(options or SamplingOptions(), **changes), self._writer
        prompt = check_text("the beginning", prompt)
        if not options.beam_size:
            if recorder is not None:
                raise SearchError("a recorder needs a beam search: give beam_size")
            return writer.generate(self.model, prompt, options)
        if not hasattr(writer, "search"):
            raise SearchError("beam search is for texts, but this run does not generate text")
        return writer.search(self.model, prompt, options, recorder)

    def fill(self, given: str, count: int = 5) -> "list[list[Filled]]":
        """For each blank of a text (two or more underscores) the likeliest words with their probabilities."""
        if not hasattr(self.task.shape, "fill"):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} has no blanks to fill: seqloom train pretrain "
                "makes one that has, unless train.objective is causal"
            )
        return self.task.shape.fill(self.model, check_text("the text", given), check_whole("count", count, 1))

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
        writer = self._writer
        return writer.check(texts, self._training_texts())

    def _training_texts(self) -> Iterable[str]:
        """The texts that the model was trained on, if the recipe's files are there and now still the same."""
        from .report import prepare_own_data

        try:
            prepared: Any = prepare_own_data(self.folder, self.task)
        except SeqloomError:
            return ()
        return prepared.splits["train"].raws["target"] if self.task.target.is_text else ()

    def keep(self, texts: Sequence[Continuation], folder: Path | str) -> list[str]:
        """Write what was generated into a folder, as files that a person can use; a line about each."""
        writer, folder = self._writer, path_of("the folder", folder)
        with explain_errors(folder, "cannot be written into"):
            folder.mkdir(parents=True, exist_ok=True)
            return list(writer.save(texts, folder))

    @property
    def _writer(self) -> Writer:
        writer: Writer | None = self.task.writer
        if writer is None:
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} answers what it is asked: seqloom predict; "
                "only language and music are written freely, and images drawn"
            )
        return writer

    def score(self, *files: Path | str) -> dict[str, Any]:
        """Scores on a file of one's own (or two parallel ones), each with its baselines."""
        examples = self.task.read_files(check_files(files))
        scores = self.task.score(self.model, examples)
        return make_score_report(self.folder, self.task, " ".join(map(str, files)), examples, scores)

    def score_texts(self, texts: Sequence[str], given: Any = None) -> list[Likelihood]:
        """How probable texts are to a run that writes or tags: log-probability and perplexity, token by token.

        What is `given` is the source of an answer, the beginning before a text, or the words of tags: one for all texts
        or a list with one for each. Words with their tags, as `predict` gives them, need none.
        """
        texts = [check_text("a text to score", text) for text in check_list("the texts", texts)]
        several = list(given) if isinstance(given, list) else [given] * len(texts)
        if len(several) != len(texts):
            raise DataError(f"{len(several)} inputs are given for {len(texts)} texts: one for all, or one for each")
        if not hasattr(self.task.shape, "measure_likelihoods"):
            raise RunError(
                f"{self.folder}: a run whose task is {self.recipe.task} gives no sequence a probability; those that "
                "write texts token by token do, and those that tag"
            )
        return self.task.shape.measure_likelihoods(self.model, list(zip(several, texts, strict=True)))

    @cached_property
    def scores(self) -> dict[str, Any]:
        """The scores on the test part that the run ended with."""
        if found := read_scores(self.folder):
            return found
        raise RunError(
            f"{self.folder}: has no final scores yet; continue with: seqloom train --into {self.folder} --resume"
        )

    def look(self, given: Any = None, answer: str | None = None, *, examples: object = None) -> "Look":
        """What happens inside while the model answers this input, or is given this answer.

        Without an input, the first of the run's own test part; `examples` are needed again if they came from Python.
        """
        from ..look import Look
        from ..look.measures.attention import Picture
        from .report import make_forecast_fan
        from .snapshots import load_snapshots

        given = self._first(examples) if given is None else self.task.accept_input(given)
        best = self.predict(given)[0] if answer is None else None
        answer, exact = (best.output, best.exact) if best else (check_text("the answer", answer),) * 2
        shown = self.task.inspect(given, exact)
        model = self.net if device_of(self.net).type == "cpu" else deepcopy(self.net).cpu()
        title = f"{given if isinstance(given, str) else 'the input'} → {answer}"
        picture = None if shown.picture is None else Picture(shown.picture, self.recipe.model.patch)
        return Look(
            model,
            (shown.batch, shown.elements, shown.answers),
            title,
            shown.input_symbols,
            shown.output_symbols,
            self.history,
            partial(self._some_batches, examples),
            picture,
            (lambda: self.record_beam(given)) if self.task.shape.searches else None,
            (lambda: make_forecast_fan(self.task, self.model, given)) if self.recipe.task == "forecast" else None,
            lambda: load_snapshots(self, []),
        )

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
            return self.task.read_files(check_files(files)), " ".join(map(str, files))
        return self.task.examples(self.own_data(), part), part

    def report(
        self, path: Path | str, given: Any = None, answer: str | None = None, *, examples: object = None
    ) -> Path:
        """One page about all of it, as a file that needs no network; looked into on this input, or one of its own."""
        from ..look.charts.base import write_chart
        from ..look.report.page import write_page
        from . import report as reports

        path = path_of("the page", path)  # before the minutes that a page takes
        given = self._first(examples) if given is None else given
        look = self.look(given, answer, examples=examples)
        try:
            findings: list[Finding] | str = self.diagnose(examples)
        except SeqloomError as error:
            findings = f"It could not be examined: {error}."
        scores = read_scores(self.folder)
        answered = reports.answer_examples(self, examples)
        return write_chart(
            path,
            write_page(reports.collect_page(self.folder, self.task, look, scores, answered, findings)),
        )

    @cached_property
    def history(self) -> "History":
        """What the run remembers of its training."""
        from ..look.history import History

        records, damage = read_records(self.folder / RECORDS)
        scores = read_scores(self.folder).get("scores", {})
        return History(self.recipe, [record for record in records if record["kind"] != "note"], scores, damage)

    def own_data(self, examples: object = None) -> Prepared:
        """The examples that the run was trained on, read again once; those from Python have to be given again."""
        from .report import prepare_own_data

        if self._data is None or self._data[0] is not examples:
            self._data = examples, prepare_own_data(self.folder, self.task, examples)
        return self._data[1]

    def pick_examples(self, at_most: int, examples: object = None) -> tuple[str, list[Example]]:
        """Some examples of the test part, or else of the validation part, which is named; as they are asked."""
        from .report import pick_examples

        return pick_examples(self.task, self.own_data(examples), at_most)

    def _some_batches(self, examples: object) -> list[Batch]:
        """Some of what was trained on, if it is at hand."""
        try:
            prepared = self.own_data(examples)
        except SeqloomError:
            return []
        return [self.task.batch(prepared, rows) for rows in self.task.order(prepared, 0)[:BATCHES]]

    def _first(self, examples: object) -> Any:
        _, asked = self.pick_examples(1, examples)
        if not asked:
            raise RunError(f"{self.folder}: its data has no example to show; give an input")
        return asked[0].input if asked[0].inspected is None else asked[0].inspected

    def record_beam(self, given: Any, beam: int | None = None) -> Tree:
        """The beam search for the answer to one input, step by step."""
        recorder = Recorder()
        self.task.shape.record_search(self.model, self.task.accept_input(given), beam, recorder)
        return recorder.trees[0]

    def quantize(self, *files: Path | str) -> dict[str, Any]:
        """Scores with weights of eight bits beside those with all of them, on files or on the validation part.

        They are kept in the run folder; afterwards this run goes on with eight bits.
        """
        examples, part = self._examples(files, "validation")
        found, seconds = [], {}
        for eight in (False, True):
            if eight:  # what others are being told meanwhile is told to its end by the weights it was begun with
                self.use(quantize_model(self, deepcopy(self.net)))
            begun = perf_counter()
            scores = drop_undefined(self.task.score(self.model, examples))
            seconds["int8" if eight else "float32"] = round(perf_counter() - begun, 3)
            found.append({name: one.score.value for name, one in scores.items()})
        plain, rounded = found
        measured = {
            name: {"float32": plain[name], "int8": rounded[name], "change": rounded[name] - plain[name]}
            for name in plain
        }
        result = {"run": str(self.folder), "split": part, "examples": len(examples), "scores": measured}
        result |= {"seconds": seconds}
        replace_file(self.folder, INT8, json_bytes(result))
        return result

    def diagnose(self, examples: object = None, seconds: float = TRIAL_SECONDS) -> "Diagnosis":
        """What ails the model, the worst first: see `diagnose`."""
        return examine(self.folder, self.task, deepcopy(self.net).cpu(), partial(self.own_data, examples), seconds)


class Diagnosis(list["Finding"]):
    """What ails a run, the worst first; `notes` say what could not be looked at."""

    notes: Sequence[str] = ()


def diagnose(
    folder: Path | str,
    cell: MakeCell | None = None,
    examples: object = None,
    seconds: float = TRIAL_SECONDS,
) -> Diagnosis:
    """What ails a run, the worst first, also one that broke off: from its records, its scores, its training examples
    and, where it has not learned, from short trials that take about so many `seconds` in all.

    The examples are read again where the recipe says; those that came from Python have to be given again. Where they
    are not at hand, the records have to do.
    """
    folder = path_of("the run folder", folder)
    check_version(folder)
    if WEIGHTS in read_manifest(folder):
        return load(folder, cell, "cpu").diagnose(examples, seconds)
    from .report import prepare_own_data

    task = read_task(folder, read_recipe(folder), cell)
    return examine(folder, task, None, lambda: prepare_own_data(folder, task, examples), seconds)


def examine(folder: Path, task: Task, model: Any, prepare: Callable[[], Prepared], seconds: float) -> Diagnosis:
    """What ails a run of which these parts are there."""
    from ..look.doctor.diagnosis import diagnose as judge
    from .checkup import RunFacts, examine_run

    records, notes = read_records(folder / RECORDS)
    scores = read_scores(folder).get("scores", {})
    known = RunFacts([record for record in records if record["kind"] != "note"], scores, read_report(folder))
    prepared = None
    try:
        prepared = prepare()
    except SeqloomError as error:
        notes.append(f"the training examples are not at hand, so only the records are looked at: {error}")
    diagnosis = Diagnosis(judge(examine_run(task, known, model, prepared, seconds)))
    diagnosis.notes = notes
    return diagnosis


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
    folder = path_of("the run folder", folder)
    check_version(folder)
    if WEIGHTS not in read_manifest(folder):
        raise RunError(f"{folder}: has no trained model yet; continue with: seqloom train --into {folder} --resume")
    sums = check_manifest(folder, SETTLED, later=[WEIGHTS, *([MIXTURE] if MIXTURE in read_manifest(folder) else [])])
    task = read_task(folder, read_recipe(folder), cell, fields)
    if read_config(folder).vocabularies != task.sizes():
        raise RunError(f"{folder}: the vocabularies in task.json are not of the sizes that config.json says")
    model = build_model(folder, task)
    data = read_checked(folder / WEIGHTS, sums[WEIGHTS], count_max_bytes(model))
    load_weights(model, parse_tensors(data, folder / WEIGHTS), folder / WEIGHTS)
    mixture = None
    if MIXTURE in sums:
        path, size = folder / MIXTURE, len(task.target) - len(NEVER_WRITTEN)
        mixture = Mixture.from_tensors(parse_tensors(read_checked(path, sums[MIXTURE]), path), size, path)
    run = Run(folder, task, model.to(choose_device(device)).eval(), mixture)
    if int8:
        run.use(quantize_model(run, run.net))
    return run


def build_model(folder: Path, task: Task) -> nn.Module:
    """A model as the recipe describes it, if the weights that are there can fill it: a recipe costs nothing to write,
    but layers take time to be made, and parameters memory."""
    use, model, (tensors, size) = USES[task.recipe.task], task.recipe.model, count_tensors(folder / WEIGHTS)
    sides = [model.side("encoder")] * use.encodes + [model.side("decoder")] * use.decodes
    layers = sum(len(side.sizes) for side in sides if side.kind != "linear")  # which is one product, however deep
    if layers > tensors and task.cell is None:
        raise RunError(f"{folder}: the recipe describes {layers} layers, but {WEIGHTS} holds {tensors} tensors")
    with Allowance(size + EXTRA_NUMBERS, f"{folder}: the recipe describes more parameters than {WEIGHTS} holds"):
        return task.build()


def check_options(options: DecodingOptions) -> DecodingOptions:
    """How answers are to be searched for, if that is what it is."""
    if not isinstance(options, DecodingOptions):
        raise SearchError(f"the options are {describe_value(options)}, but DecodingOptions were expected")
    return options


def check_files(files: Sequence[Path | str]) -> list[str]:
    """The names of files that are to be read; at least one."""
    if not files:
        raise DataError("no file is given to score on: the scores of the run's own test part are in `scores`")
    return [str(path_of("a file", file)) for file in files]


def quantize_model(run: Run, model: Any) -> Any:
    """A model of the run, which from now on answers with weights of eight bits."""
    if not hasattr(model, "quantize_weights"):
        raise RunError(f"{run.folder}: weights of eight bits are for what writes and labels, not for {run.recipe.task}")
    model.quantize_weights()
    return model
