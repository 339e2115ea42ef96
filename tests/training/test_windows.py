"""Windows and streams: a state that is carried on, cut off from its past, and comes back from a checkpoint."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.layers.state import detach
from seqloom.models import Batch, GenerationObjective, LabelingObjective, Objective
from seqloom.training.carried import flatten_state
from seqloom.training.loop import Training
from seqloom.training.schedules import teacher_forcing_at
from seqloom.training.update import backpropagate

from ..recipes import small_seq2seq
from .cutting import Run, assert_same, cut_at_batch
from .tiny import SYMBOLS, Guesser, Rows, same, settings


class Stream(Rows):
    """Four long texts side by side, read a piece at a time: all but the first piece of an epoch go on."""

    def order(self, epoch: int) -> Sequence[Any]:
        return [np.array([epoch, at]) for at in range(0, 20, 4)]

    def batch(self, rows: Any) -> Batch:
        self.asked.append(rows.tolist())
        if len(rows) != 2:  # the validation's
            rows = np.array([0, 0])
        epoch, at = rows.tolist()
        texts = torch.from_numpy(np.random.default_rng(epoch).integers(3, SYMBOLS, (4, 21)))
        piece = texts[:, at : at + 5]
        return Batch.from_sequence(piece, torch.ones(piece.shape, dtype=torch.bool))._replace(starts_sequence=at == 0)


class Pairs(Rows):
    """Rows that are written about a source: themselves."""

    def batch(self, rows: Any) -> Batch:
        found = super().batch(rows)
        return found._replace(source=(found.inputs, found.mask))


def writing(*overrides: str) -> Callable[[], Objective]:
    recipe = Recipe().override("model.size=8", "model.dropout=0.2", *overrides).resolved()

    def make() -> Objective:
        torch.manual_seed(0)
        return GenerationObjective(small_seq2seq(recipe.model, SYMBOLS, SYMBOLS))

    return make


def test_the_loss_of_a_stream_is_that_of_the_whole_text_and_the_gradient_stops_at_the_joints() -> None:
    objective, feed = Guesser(dropout=0.0).double(), Stream()
    pieces = [feed.batch(rows) for rows in feed.order(0)]
    loss, count, _ = backpropagate(objective, pieces)
    found = {name: each.grad.clone() for name, each in objective.named_parameters()}
    objective.zero_grad()
    total, number, state = 0.0, 0.0, None
    for piece in pieces:
        values, state = objective.read(objective.embed(piece.inputs), state)
        logits = objective.tell(objective.norm(values))
        state = state.detach()
        part = torch.nn.functional.cross_entropy(logits.flatten(0, 1), piece.target.flatten(), reduction="sum")
        part.backward()
        total, number = total + part.item(), number + piece.target.numel()
    assert (loss, count) == (pytest.approx(total), number)
    for name, each in objective.named_parameters():
        torch.testing.assert_close(found[name], each.grad)


def test_a_window_is_a_step_and_the_next_goes_on_from_its_state_with_the_new_weights() -> None:
    given = settings(bptt_window=2, clip_norm=0.0)
    training, other = Training(Guesser(dropout=0.0), Rows(), given), Guesser(dropout=0.0)
    plain = Training(other, Rows(), settings(clip_norm=0.0))
    batch = training.feed.batch(training.order[0])
    state = None
    for number, window in enumerate(batch.windows(2)):
        training.advance()
        loss, count, state = other(window, state)
        state = detach(state)
        plain.optimizer.zero_grad()
        (loss / count).backward()
        for group in plain.optimizer.param_groups:
            group["lr"] = training.optimizer.param_groups[0]["lr"]
        plain.optimizer.step()
        assert training.progress.step == number + 1
        for one, two in zip(training.objective.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(one, two)
    assert (training.progress.batch, training.progress.window) == (1, 0)


KINDS = {
    "guesser": (Guesser, Rows),
    "stream": (Guesser, Stream),
    "gru": (writing("model.kind=gru"), Pairs),
    "lstm": (writing("model.kind=lstm", "model.attention=additive"), Pairs),
    "transformer": (writing("model.kind=transformer"), Pairs),
    "convolution": (writing("model.kind=convolution"), Pairs),
    "held": (writing("model.kind=rnn", "model.weight_constraint=spectral", "model.zoneout=0.1"), Pairs),
}
ALL = {
    "bptt_window": 2,
    "accumulate_batches": 3,
    "teacher_forcing": 0.3,
    "teacher_forcing_schedule": "linear",
    "ema": 0.9,
    "optimizer": "radam",
    "schedule": "inverse-root",
    "clip_value": 0.05,
}


FEW = {
    "bptt_window": {"bptt_window": 2},
    "teacher_forcing": {"teacher_forcing": 0.5},
    "ema": {"accumulate_batches": 2, "ema": 0.9},
}
CUTS = [(kind, ALL) for kind in KINDS] + [("gru", given) for given in FEW.values()]


@pytest.mark.parametrize(
    ("kind", "given"), CUTS, ids=lambda value: value if isinstance(value, str) else "+".join(value)
)
def test_cut_with_all_of_it_switched_on_it_goes_on_as_if_it_had_not_been(
    tmp_path: Path, kind: str, given: dict[str, Any]
) -> None:
    if kind in ("guesser", "stream"):  # which read no element of their own
        given = {name: value for name, value in given.items() if not name.startswith("teacher_forcing")}
    make, feed = KINDS[kind]
    asked = settings(steps=9, checkpoint_every=1, validate_every=4, **given)
    whole = Run(given=asked, make=make, feed=feed).whole()
    assert whole.records[-1].skipped == 0
    chance = np.random.default_rng(len(kind))
    for cut in {3, int(chance.integers(4, len(whole.feed.asked)))}:
        shutil.rmtree(tmp_path, ignore_errors=True)
        run = Run(tmp_path, asked, make, feed)
        cut_at_batch(run, cut)
        assert_same(run.rebuilt().whole(), whole)


def test_a_state_is_saved_only_where_the_next_batch_goes_on_from_it() -> None:
    training = Training(Guesser(), Stream(), settings())
    carried = []
    for _ in range(6):
        training.advance()
        carried.append(bool(training.checkpoint().carried))
    assert carried == [True, True, True, True, False, True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_comes_back_tensor_by_tensor(kind: str) -> None:
    make, feed = KINDS[kind]
    training = Training(make(), feed(), settings(bptt_window=2))
    training.advance()
    found = training.checkpoint()
    assert found.carried
    again = Training(make(), feed(), settings(bptt_window=2))
    again.restore(found)
    assert same(flatten_state(again.state), flatten_state(training.state))
    assert type(again.state) is type(training.state)


@pytest.mark.parametrize("change", ["missing", "more", "shape", "kind"])
def test_a_state_that_does_not_fit_is_refused(change: str) -> None:
    training = Training(Guesser(), Rows(), settings(bptt_window=2))
    training.advance()
    found = training.checkpoint()
    [(name, tensor)] = found.carried.items()
    carried = {
        "missing": {"0001": tensor},
        "more": {name: tensor, "0001": tensor},
        "shape": {name: tensor[..., :-1]},
        "kind": {name: tensor.double()},
    }[change]
    with pytest.raises(RunError, match="^c: the carried state"):
        Training(Guesser(), Rows(), settings(bptt_window=2)).restore(replace(found, carried=carried, place="c"))


def test_a_window_that_the_batch_does_not_have_is_refused() -> None:
    training = Training(Guesser(), Rows(), settings(bptt_window=2))
    training.advance()
    found = training.checkpoint()
    with pytest.raises(RunError, match="window 99 of a batch that has"):
        Training(Guesser(), Rows(), settings(bptt_window=2)).restore(replace(found, state=found.state | {"window": 99}))


def test_after_a_step_that_was_not_finite_the_next_window_begins_anew() -> None:
    training = Training(Guesser(), Stream(), settings())
    training.advance()
    training.state = training.state * torch.nan
    training.advance()
    assert training.progress.skipped == 1 and training.state is None
    training.advance()
    assert training.progress.skipped == 1


def test_accumulated_batches_make_the_step_of_one_big_batch() -> None:
    """Whatever the padding, and the last group of an epoch is what is left."""
    given = settings(accumulate_batches=3, clip_norm=0.0)
    training = Training(Guesser(dropout=0.0).double(), Rows(), given)
    plain = Training(Guesser(dropout=0.0).double(), Rows(), given)
    groups = [np.concatenate(training.order[at : at + 3]) for at in (0, 3, 6)]
    for group in groups:
        training.advance()
        loss, count, _ = plain.objective(plain.feed.batch(group))
        plain.optimizer.zero_grad()
        (loss / count).backward()
        plain.optimizer.param_groups[0]["lr"] = training.optimizer.param_groups[0]["lr"]
        plain.optimizer.param_groups[1]["lr"] = training.optimizer.param_groups[1]["lr"]
        plain.optimizer.step()
        for one, two in zip(training.objective.parameters(), plain.objective.parameters(), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-9)
    assert (training.progress.epoch, training.progress.batch) == (1, 0)


def test_the_truth_is_given_as_often_as_the_schedule_says_and_never_decided_by_what_else_is_drawn() -> None:
    def shares(disturb: bool) -> list[torch.Tensor]:
        training = Training(
            writing()(), Pairs(rows=400, size=100), settings(teacher_forcing=0.25, teacher_forcing_schedule="linear")
        )
        found = []
        for _ in range(24):
            if disturb:
                torch.rand(7)
            _, [batch] = training.read()
            found.append(torch.ones(batch.mask.shape).bool() if batch.teacher_forced is None else batch.teacher_forced)
            training.progress.step += 1
        return found

    found = shares(False)
    for number, given in enumerate(found):
        expected = 1 - 0.75 * number / 23
        assert given.float().mean().item() == pytest.approx(expected, abs=5 * 0.5 / given.numel() ** 0.5)
    assert all(map(torch.equal, found, shares(True)))


@pytest.mark.parametrize("schedule", ["constant", "linear", "exponential", "inverse-sigmoid"])
def test_at_each_step_the_truth_is_given_where_the_draw_lies_below_that_steps_share(schedule: str) -> None:
    given = settings(steps=9, teacher_forcing=0.1, teacher_forcing_schedule=schedule, accumulate_batches=2)
    training = Training(writing()(), Pairs(), given)
    for step in range(1, 10):
        place, share = training.progress.model_copy(), teacher_forcing_at(step, given)
        beside = Training(writing()(), Pairs(), given)
        beside.progress = place
        for batch in training.read()[1]:
            chance = beside.pieces[0].chance
            found = torch.ones_like(chance, dtype=torch.bool) if batch.teacher_forced is None else batch.teacher_forced
            assert torch.equal(found, chance < share)
            place.batch += 1
        training.progress.step += 1


@pytest.mark.parametrize("given", [{"bptt_window": 3}, {"teacher_forcing": 0.5}])
def test_what_only_a_writer_can_do_is_refused_elsewhere(given: dict[str, Any]) -> None:
    objective = Guesser()
    objective.carries = False
    with pytest.raises(RecipeError, match=rf"^train\.{next(iter(given))} is for models that write"):
        Training(objective, Rows(), settings(**given))
    assert GenerationObjective.carries and not LabelingObjective.carries
