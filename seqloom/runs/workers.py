"""Several processes that train one run: how many are fastest here, and being one of them that is not the first."""

import json
import threading
from collections.abc import Mapping

from ..config.recipe import Recipe, Train
from ..data.schema import FieldKind
from ..errors import RunError
from ..layers.cells import MakeCell
from ..tasks.auto import settle
from ..tasks.task import Feed
from ..training.devices import choose_device
from ..training.loop import fit
from ..training.parallelism import measure_parallelism
from ..training.processes import ProcessGroup, shutdown
from ..training.watching import MakeWatch
from .foreign import declare_run
from .start import declare_with_start


def choose_processes(recipe: Recipe) -> tuple[int, str]:
    """How many processes make a step fastest on this machine, by trial steps, and a sentence about it; one process and
    no sentence where there is no choice, or where the differences are noise."""
    recipe.check_data()
    recipe = settle(recipe).recipe
    task, prepared = declare_with_start(recipe)[0].prepare(recipe.resolved(), lambda text: None)
    objective = task.objective(task.shape.build())
    measured = measure_parallelism(objective, Feed(task, prepared), task.recipe.train)
    if measured is None or not measured.clear:
        return 1, ""
    return measured.count if measured.better == "processes" else 1, str(measured)


def run_worker(
    processes: ProcessGroup,
    cell: MakeCell | None,
    fields: Mapping[str, FieldKind] | None,
    stop: threading.Event | None,
) -> None:
    """Be one of several processes, but not the first: train as it says, and leave everything else to it."""
    try:
        orders = json.loads(processes.broadcast())
    except RuntimeError:  # what torch says when the other side is gone; the reason, the first process has told
        raise RunError("the first process ended before the training began") from None
    if orders:
        recipe = Recipe.of(orders["recipe"])
        declaration = declare_run(recipe, fields)
        sides = declaration.schema.sides
        carried = {side: sides[side].field.from_json(saved) for side, saved in orders["carried"].items()}
        task, prepared = declaration.reuse_fields(carried).prepare(recipe, lambda text: None, known=orders["known"])
        if prepared.fingerprint != orders["data"]:
            raise RunError(f"process {processes.rank} finds other data than the first one: the files must be the same")
        task.cell = cell
        model, settings = task.shape.build(), task.recipe.train
        objective = task.objective(model.to(choose_device(recipe.train.device)))
        feed, changed, watch = Feed(task, prepared), orders["changed"], choose_watch(settings)
        for _ in fit(objective, feed, settings, dict, stop=stop, ranks=processes, changed=changed, watch=watch):
            pass
    shutdown()


def choose_watch(settings: Train) -> MakeWatch | None:
    """Who looks at the weights while they are learned, if anybody is to."""
    if not settings.watch_every:
        return None
    from ..look.watching import Watching

    return Watching
