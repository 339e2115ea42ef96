"""Search over settings on Optuna: many runs of one recipe, each a little different, the hopeless ones cut short.

The study lives in a database, SQLite in the folder unless another is named, and every trial is a run folder of its
own. So a search that was killed goes on, the trial that was under way included. Knows nothing of terminals.
"""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.ranges import Over
from ..config.recipe import Recipe
from ..errors import MissingExtra, RecipeError, RunError
from ..training.files import explain_errors, lock_folder
from ..training.manifests import MANIFEST
from .folder import RECORDS, read_records
from .run import train

if TYPE_CHECKING:
    import optuna

HEARTBEAT = 60  # seconds after which a machine that shares the study is missed


@dataclass(frozen=True)
class Trial:
    """One run of the search, as it stands."""

    number: int
    settings: dict[str, Any]
    loss: float | None  # the best validation loss
    state: str  # complete, pruned, fail, running or waiting
    folder: Path


@dataclass(frozen=True)
class Search:
    """A search over settings, in a folder."""

    recipe: Recipe
    overs: Sequence[Over]
    into: Path
    storage: str = ""  # the URL of a database; none is SQLite in the folder

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
        asked = [self.recipe.model_dump(mode="json"), [over.__dict__ for over in self.overs]]
        return f"seqloom-{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]}"

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
            while len(study.get_trials(deepcopy=False, states=done)) < trials:
                try:
                    study.optimize(self._objective(stop), n_trials=1, callbacks=[lambda _, one: ended.append(one)])
                except SearchStopped:
                    return
                yield self.describe_trial(ended[-1])

    def _objective(self, stop: threading.Event | None) -> Callable[["optuna.Trial"], float]:
        import optuna

        def run_trial(trial: "optuna.Trial") -> float:
            try:
                recipe = self.recipe.override(*[f"{over.name}={over.suggested(trial)}" for over in self.overs])
            except RecipeError:  # each value is possible, but not together
                raise optuna.TrialPruned from None
            folder = self.folder(trial.params)
            begun = (folder / MANIFEST).exists()
            records: Any = train(None if begun else recipe, folder, resume=True, stop=stop)
            with closing(records):  # at once, so that the folder is free again
                for record in records:
                    if record.scores and math.isfinite(record.scores["loss"]):
                        trial.report(record.scores["loss"], record.step)
                        if trial.should_prune() and record.kind != "end":
                            raise optuna.TrialPruned
            if stop is not None and stop.is_set():
                raise SearchStopped
            return read_best_loss(folder)

        return run_trial

    def describe_trial(self, trial: "optuna.trial.FrozenTrial") -> Trial:
        reported = [trial.value] if trial.value is not None else list(trial.intermediate_values.values())
        loss = min((value for value in reported if value is not None), default=None)
        return Trial(trial.number, trial.params, loss, trial.state.name.lower(), self.folder(trial.params))

    def trials(self) -> list[Trial]:
        """All trials so far, the best first."""
        with self.study() as study:
            found = [self.describe_trial(trial) for trial in study.trials]
        return sorted(found, key=lambda one: (one.state != "complete", one.loss is None, one.loss))

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


def read_best_loss(folder: Path) -> float:
    """The lowest validation loss of a run, whoever has trained which part of it."""
    records, _ = read_records(folder / RECORDS)
    losses = [record["scores"]["loss"] for record in records if record.get("scores")]
    return min((loss for loss in losses if loss is not None), default=math.inf)


def requeue_trials(study: "optuna.Study") -> None:
    """Let the trials that a killed search has left under way be the next ones."""
    import optuna

    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)
