"""Search over settings on Optuna: many runs of one recipe, each a little different, the hopeless ones cut short.

A trial is as good as the validation of its best weights, by what training selects them by. Where every setting has a
list of values the search is a grid; no settings are tried twice.
The study lives in a database, SQLite in the folder unless another is named, and every trial is a run folder of its
own. So a search that was killed goes on, the trial that was under way included. Knows nothing of terminals.
"""

import hashlib
import json
import math
import random
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.ranges import Over
from ..config.recipe import Recipe
from ..errors import MissingExtra, RecipeError, RunError
from ..training.files import explain_errors, lock_folder
from ..training.manifests import MANIFEST
from ..training.records import HIGHER, selection_criteria
from .folder import read_recipe, read_scores
from .run import train

if TYPE_CHECKING:
    import optuna

HEARTBEAT = 60  # seconds after which a machine that shares the study is missed
TRIALS = 20  # unless another number is asked for; of a grid, all
REPEATED, MEASURE = "repeated", "measure"  # of a trial: its settings are another's; what it is selected by
ENUMERATED = 10**5  # combinations of settings, at most, among which an untried one is looked for


@dataclass(frozen=True)
class Trial:
    """One run of the search, as it stands."""

    number: int
    settings: dict[str, Any]
    measure: str  # what training selects by: the validation loss, or the score beside it
    value: float | None  # of the best weights on the whole validation part; of a pruned trial, the best so far
    state: str  # complete, pruned, fail, running or waiting
    folder: Path


@dataclass(frozen=True)
class SettingSearch:
    """A search over settings, in a folder."""

    recipe: Recipe
    overs: Sequence[Over]
    into: Path
    storage: str = ""  # the URL of a database; none is SQLite in the folder

    @property
    def grid_size(self) -> int:
        """How many combinations a grid has; 0 where a setting has a range."""
        return math.prod(len(over.choices) for over in self.overs)

    @contextmanager
    def study(self) -> Iterator["optuna.Study"]:
        """The study of this folder or database, begun now or before; its connections end with the block."""
        try:
            import optuna
        except ImportError:
            raise MissingExtra("optuna", "tune") from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with explain_errors(self.into, "cannot be made"):
            self.into.mkdir(parents=True, exist_ok=True)
        try:
            storage = optuna.storages.RDBStorage(
                self.storage or f"sqlite:///{self.into.resolve() / 'study.db'}",
                heartbeat_interval=HEARTBEAT if self.storage else None,
                heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback()
                if self.storage
                else None,
            )
            study = optuna.create_study(
                storage=storage,
                study_name=self.name(),
                load_if_exists=True,
                direction="minimize",
                sampler=optuna.samplers.TPESampler(seed=self.recipe.train.seed),
                pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
            )
        except Exception as error:  # whatever a database and its driver say
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RunError(f"{self.storage or self.into}: the study cannot be opened ({reason})") from None
        try:
            yield study
        finally:
            storage.remove_session()
            storage.engine.dispose()

    def name(self) -> str:
        """The same search has the same name, whoever takes part in it."""
        identity = [self.recipe.model_dump(mode="json"), [over.__dict__ for over in self.overs]]
        return f"seqloom-{hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]}"

    def folder(self, settings: dict[str, Any]) -> Path:
        """Where a trial with these settings is trained: named by them, so that another go finds what was begun."""
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:10]
        return self.into / f"trial-{digest}"

    def run(self, trials: int, stop: threading.Event | None = None) -> Iterator[Trial]:
        """Do trials until the study has so many that were completed or pruned; each is told when it ends."""
        with self.study() as study, lock_folder(self.into):
            import optuna

            if not self.storage:
                requeue_trials(study)
            done = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
            ended: list[optuna.trial.FrozenTrial] = []  # the own ones: others may work on this study as well
            repeated = False
            while len(list_trials(study, done)) < trials:
                if (self.grid_size or repeated) and not self._enqueue_untried(study, drawn=repeated):
                    return
                try:
                    study.optimize(self._objective(stop), n_trials=1, callbacks=[lambda _, one: ended.append(one)])
                except SearchStopped:
                    return
                repeated = REPEATED in ended[-1].user_attrs
                if not repeated:
                    yield self.describe_trial(ended[-1])

    def _enqueue_untried(self, study: "optuna.Study", drawn: bool) -> bool:
        """Let settings that were not tried yet be the next: the first, or drawn; whether there are any."""
        import optuna

        if study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.WAITING,)):
            return True
        values = [over.values for over in self.overs]
        if any(each is None for each in values):
            return True
        tried = [trial.params for trial in list_trials(study)]
        names = [over.name for over in self.overs]
        every = (dict(zip(names, each, strict=True)) for each in product(*(each or () for each in values)))
        untried = [each for each in islice(every, ENUMERATED) if each not in tried]
        if untried:
            study.enqueue_trial(random.Random(len(tried)).choice(untried) if drawn else untried[0])
        return bool(untried)

    def _objective(self, stop: threading.Event | None) -> Callable[["optuna.Trial"], float]:
        import optuna

        def run_trial(trial: "optuna.Trial") -> float:
            texts = [f"{over.name}={over.suggest(trial)}" for over in self.overs]
            if any(one.params == trial.params for one in list_trials(trial.study) if one.number < trial.number):
                trial.set_user_attr(REPEATED, True)
                raise optuna.TrialPruned
            try:
                recipe = self.recipe.override(*texts)
            except RecipeError:  # each value is possible, but not together
                raise optuna.TrialPruned from None
            folder = self.folder(trial.params)
            resumed = (folder / MANIFEST).exists()
            records: Any = train(None if resumed else recipe, folder, resume=True, stop=stop)
            with closing(records):  # at once, so that the folder is free again
                for record in records:
                    if not record.scores:
                        continue
                    select_by = read_recipe(folder).train.select_by  # which may have been settled from the data
                    trial.set_user_attr(MEASURE, name_measure(record.scores, select_by))
                    value, loss = selection_criteria(record.scores, select_by)
                    if math.isfinite(value) and math.isfinite(loss):
                        trial.report(value, record.step)
                        if trial.should_prune() and record.kind != "end":
                            raise optuna.TrialPruned
            if stop is not None and stop.is_set():
                raise SearchStopped
            scores = read_scores(folder).get("validation") or {}
            trial.set_user_attr(MEASURE, name_measure(scores, read_recipe(folder).train.select_by))
            return read_criteria(folder)[0]

        return run_trial

    def describe_trial(self, trial: "optuna.trial.FrozenTrial") -> Trial:
        reported = [trial.value] if trial.value is not None else list(trial.intermediate_values.values())
        value = min((value for value in reported if value is not None), default=None)
        folder = self.folder(trial.params)
        measure = trial.user_attrs.get(MEASURE, "loss")
        if value is not None and measure in HIGHER:
            value = -value
        return Trial(trial.number, trial.params, measure, value, trial.state.name.lower(), folder)

    def trials(self) -> list[Trial]:
        """All trials so far, the best first: by what training selects by, then by the validation loss."""
        with self.study() as study:
            trials = [self.describe_trial(trial) for trial in list_trials(study)]

        def rank(one: Trial) -> tuple[Any, ...]:
            if one.state == "complete":
                return False, *read_criteria(one.folder)
            value = math.inf if one.value is None else one.value
            return True, -value if one.measure in HIGHER else value

        return sorted(trials, key=rank)

    def best_command(self, name: str, changes: Sequence[str], best: Trial) -> str:
        """What to type to train the best settings anew; `name` and `changes` are the recipe as it was asked for."""
        settings = [f"{key}={value}" for key, value in best.settings.items()]
        return shlex.join(["seqloom", "train", name, *changes, *settings, "--into", f"{self.into}-best"])

    def importances(self) -> dict[str, float]:
        """How much of the differences each setting explains, the most important first; empty for too few trials."""
        with self.study() as study:
            import optuna

            complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            if len(complete) < 4 or len({trial.value for trial in complete}) < 2:
                return {}
            return dict(optuna.importance.get_param_importances(study))


class SearchStopped(BaseException):
    """The search ends here; for Optuna the trial stays under way, for the next search to take up."""


def read_criteria(folder: Path) -> tuple[float, float]:
    """What is to be as low as can be of a finished run, and its loss: of the best weights, on the whole validation."""
    scores = read_scores(folder).get("validation") or {}
    if "loss" not in scores:
        return math.inf, math.inf
    return selection_criteria(scores, read_recipe(folder).train.select_by)


def name_measure(scores: dict[str, float], select_by: str) -> str:
    """The name of the score or loss that selects a run."""
    return next((name for name in scores if name != "loss"), "loss") if select_by == "score" else "loss"


def list_trials(study: "optuna.Study", states: Any = None) -> list["optuna.trial.FrozenTrial"]:
    """The trials of a study but those that failed, which are tried again, and those that repeated another."""
    import optuna

    return [
        trial
        for trial in study.get_trials(deepcopy=False, states=states)
        if REPEATED not in trial.user_attrs and trial.state != optuna.trial.TrialState.FAIL
    ]


def requeue_trials(study: "optuna.Study") -> None:
    """Let the trials that a killed search has left under way be the next ones."""
    import optuna

    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)
