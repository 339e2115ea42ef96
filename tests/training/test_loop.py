"""The loop: what a step is, what it tells, and that it may be cut anywhere."""

import itertools
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.errors import DataError, RunError
from seqloom.models import Batch
from seqloom.runs.json_output import make_record_json, replace_nonfinite
from seqloom.training import loop
from seqloom.training.checkpoints import STATE, WEIGHTS, Checkpoint, Checkpoints
from seqloom.training.loop import (
    RECORD_EVERY,
    SKIPPED_AT_MOST,
    Training,
    evaluation_mode,
    fit,
)
from seqloom.training.optimizer import build_optimizer
from seqloom.training.processes import ProcessGroup
from seqloom.training.randomness import Draw, draw_from
from seqloom.training.records import Progress, Record
from seqloom.training.schedules import learning_rate_at
from seqloom.training.tensors import copy_weights
from seqloom.training.update import backpropagate, count_tokens, update

from .cutting import Run, assert_same, cut_at_batch
from .tiny import Guesser, Rows, same, settings, untimed, validation


@pytest.fixture(scope="module")
def whole() -> Run:
    """The run that nothing has interrupted."""
    return Run().whole()


# --- cut anywhere, go on, and nothing shows -------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 2, 4, 5, 6, 7, 8, 11, 14, 15, 17, 22, 27, 29])
def test_cut_in_any_step_or_validation_it_goes_on_as_if_it_had_not_been(tmp_path: Path, whole: Run, cut: int) -> None:
    """7 batches an epoch; a validation asks for a batch too, so these numbers fall on all kinds of moments."""
    run = Run(tmp_path)
    cut_at_batch(run, cut)
    assert_same(run.rebuilt().whole(), whole)


@pytest.mark.parametrize("records", range(1, 9))
def test_cut_while_a_record_is_read_it_goes_on_as_if_it_had_not_been(tmp_path: Path, whole: Run, records: int) -> None:
    run = Run(tmp_path)
    for _ in itertools.islice(run.walk(), records):
        pass
    assert_same(run.rebuilt().whole(), whole)


@pytest.mark.parametrize("cuts", [(6, 3), (10, 1, 1), (7, 7, 7), (3, 5, 2, 9)])
def test_cut_again_and_again_it_goes_on_as_if_it_had_not_been(
    tmp_path: Path, whole: Run, cuts: tuple[int, ...]
) -> None:
    run = Run(tmp_path)
    for cut in cuts:
        cut_at_batch(run, cut)
        run = run.rebuilt()
    assert_same(run.whole(), whole)


@pytest.mark.parametrize("steps", range(1, 25))
def test_stopped_after_any_step_it_saves_tells_nothing_more_and_goes_on(tmp_path: Path, whole: Run, steps: int) -> None:
    """Mid-epoch, on its boundary (7, 14, 21), where a validation (5, 10, …) or a checkpoint (4, 8, …) is due, last."""
    run = Run(tmp_path)
    ask, count = run.feed.batch, itertools.count(1)

    def asked(rows: Any) -> Batch:
        if len(rows) <= run.feed.size and next(count) == steps:  # a training batch, not the validation's
            run.stop.set()
        return ask(rows)

    run.feed.batch = asked
    run.whole()
    assert run.checkpoints is not None and run.checkpoints.steps()[0] == steps
    assert all(record.step < steps for record in run.records)
    assert_same(run.rebuilt().whole(), whole)


def test_from_the_checkpoint_before_a_damaged_one_it_comes_to_the_same_end(tmp_path: Path, whole: Run) -> None:
    run = Run(tmp_path)
    cut_at_batch(run, 20)
    newest, before = Checkpoints(tmp_path).steps()
    weights = tmp_path / f"step-{newest}" / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-3])
    again = run.rebuilt()
    assert again.checkpoints is not None and (found := again.checkpoints.find_newest()) and found.step == before
    assert_same(again.whole(), whole)


def test_a_run_that_has_ended_tells_its_end_again_and_nothing_else(tmp_path: Path) -> None:
    for given in (settings(), settings(patience=2, learning_rate=5.0, steps=60, checkpoint_every=5)):
        shutil.rmtree(tmp_path, ignore_errors=True)
        run = Run(tmp_path, given).whole()
        again = run.rebuilt()
        before = len(again.records)
        assert_same(again.whole(), run)
        assert len(again.records) == before + 1 and again.records[-1].kind == "end"


def test_early_stopping_comes_at_the_same_step_after_a_cut(tmp_path: Path) -> None:
    given = settings(patience=2, learning_rate=2.0, steps=200, validate_every=3, checkpoint_every=4)
    whole = Run(given=given).whole()
    end = whole.records[-1].step
    assert end < 200
    for cut in (end // 2, end - 2, end):
        shutil.rmtree(tmp_path, ignore_errors=True)
        run = Run(tmp_path, given)
        cut_at_batch(run, cut)
        assert_same(run.rebuilt().whole(), whole)


def test_the_counters_of_skipped_steps_survive_a_cut(tmp_path: Path) -> None:
    def poisoned(run: Run) -> Run:
        for row in (3, 8, 21):
            run.feed.texts[row][0] = 0
        run.validate = lambda: {"loss": 1.0}
        return run

    whole = poisoned(Run()).whole()
    assert whole.records[-1].skipped > 3
    for cut in (4, 9, 17):
        shutil.rmtree(tmp_path, ignore_errors=True)
        run = poisoned(Run(tmp_path))
        cut_at_batch(run, cut)
        assert_same(poisoned(run.rebuilt()).whole(), whole)


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    torch.manual_seed(5)
    one = Run().whole()
    torch.manual_seed(6)
    assert_same(Run().whole(), one)
    assert untimed(Run(given=settings(seed=12)).whole().records) != untimed(one.records)


def test_checkpoints_reading_and_validating_change_nothing(tmp_path: Path) -> None:
    plain = Run(given=settings(validate_every=24)).whole()
    run = Run(tmp_path, settings(validate_every=2, checkpoint_every=3))
    calm = run.validate

    def validate() -> dict[str, float]:
        torch.rand(7)  # a validation may draw, as sampling does
        return calm()

    run.validate = validate
    for _ in run.walk():
        torch.rand(3)  # so may a reader
        run.objective.eval()  # and look at the model in another mode
    assert same(copy_weights(run.objective), copy_weights(plain.objective))


@pytest.mark.parametrize("mode", [True, False])
def test_after_an_evaluation_the_mode_is_what_it_was_even_if_it_failed(mode: bool) -> None:
    objective = Guesser().train(mode)
    with pytest.raises(ZeroDivisionError), evaluation_mode(objective):
        assert not objective.training and not torch.is_grad_enabled()
        raise ZeroDivisionError
    assert objective.training is mode and objective.drop.training is mode and torch.is_grad_enabled()


# --- a checkpoint that does not belong here -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"step": -1}, "'step'"),
        ({"step": 3}, "holds step 3"),
        ({"batch": 7}, "batch 7 of an epoch, but the data has 7 batches"),
        ({"epoch": "0"}, "'epoch'"),
        ({"epoch": 1.5}, "'epoch'"),
        ({"seconds": None}, "'seconds'"),
        ({"more": 1}, "'more'"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused_in_one_sentence(change: dict[str, Any], reason: str) -> None:
    training = Training(Guesser(), Rows(), settings())
    for _ in range(4):
        training.advance()
    checkpoint = training.checkpoint()
    with pytest.raises(RunError) as error:
        Training(Guesser(), Rows(), settings()).restore(
            replace(checkpoint, state=checkpoint.state | change, place="c/step-4")
        )
    assert str(error.value).startswith("c/step-4: ") and reason in str(error.value) and "\n" not in str(error.value)


def test_a_checkpoint_of_another_model_is_refused() -> None:
    training = Training(Guesser(size=6), Rows(), settings())
    training.advance()
    with pytest.raises(RunError, match="but this model's recipe makes it"):
        Training(Guesser(size=8), Rows(), settings()).restore(training.checkpoint())


def test_the_state_of_a_checkpoint_is_json_that_gives_every_number_back() -> None:
    training = Training(Guesser(), Rows(), settings())
    for _ in range(4):
        training.advance()
    state = training.checkpoint().state
    timeless = {"recent_seconds": 0.0}
    found = Progress.read(json.loads(json.dumps(state)), STATE)
    assert found.model_copy(update=timeless) == training.progress.model_copy(update=timeless)
    assert training.progress.loss_sum > 0 and training.progress.largest_norm


# --- data that has changed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 3])
def test_changed_data_is_read_from_the_beginning_of_the_next_epoch_and_none_is_left_out(window: int) -> None:
    """Whichever batch or window it stood at: on the boundary, the next epoch is the one that has not begun."""
    training = Training(Guesser(), Rows(), settings(steps=99, bptt_window=window))
    boundaries = 0
    while (now := training.progress).epoch < 3:
        training.advance()
        begun = now.batch > 0 or now.window > 0
        boundaries += not begun
        again = Training(Guesser(), Rows(rows=23, seed=5), settings(steps=99, bptt_window=window))
        again.restore(training.checkpoint(), other_data=True)
        again.advance()
        assert again.feed.asked[0] == again.feed.order(now.epoch + begun)[0].tolist()
    assert boundaries == 3


@pytest.mark.parametrize("changed", [-1, 3, 4, 5])
def test_only_checkpoints_up_to_the_change_are_of_other_data(tmp_path: Path, changed: int) -> None:
    run = Run(tmp_path)
    cut_at_batch(run, 6)  # behind the checkpoint of step 4
    again = run.rebuilt()
    next(fit(again.objective, again.feed, again.settings, again.validate, again.checkpoints, changed=changed))
    epoch, batch = (1, 0) if changed >= 4 else (0, 4)
    assert again.feed.asked[0] == again.feed.order(epoch)[batch].tolist()


# --- chance -------------------------------------------------------------------------------------------------------


class Alike(Rows):
    """Rows of one length, so that what is drawn for one batch fits any other."""

    def __init__(self) -> None:
        super().__init__(rows=12, size=4)
        self.texts = [np.resize(text, 6) for text in self.texts]


def dropped(steps: int, **given: Any) -> list[tuple[bool, ...]]:
    """What dropout left out at each step."""
    rank = given.pop("rank", 0)
    training = Training(Guesser(), Alike(), settings(**given), ProcessGroup(rank))
    found: list[tuple[bool, ...]] = []
    training.objective.drop.register_forward_hook(
        lambda _module, _given, made: found.append(tuple((made == 0).flatten().tolist()))
    )
    for _ in range(steps):
        training.advance()
    return found


def test_dropout_is_drawn_anew_at_every_step_by_every_process_and_for_every_seed() -> None:
    """Three batches an epoch: neither the steps of an epoch nor the same batch of two epochs leave out the same."""
    every = [*dropped(9), *dropped(9, rank=1), *dropped(9, seed=12)]
    assert len(set(every)) == len(every) == 27


def test_what_is_drawn_with_a_batch_is_drawn_anew_for_every_batch_of_every_epoch() -> None:
    def drawn(seed: int) -> list[tuple[float, ...]]:
        training, found = Training(Guesser(), Alike(), settings(seed=seed)), []
        for _ in range(9):
            found.append(tuple(training.pieces[0].chance.flatten().tolist()))
            training.read()
        return found

    every = [*drawn(11), *drawn(12)]
    assert len(set(every)) == len(every) == 18


def test_teacher_forcing_is_drawn_for_each_token_or_for_each_sequence() -> None:
    for per in ("token", "sequence"):
        asked = settings(teacher_forcing=0.5, teacher_forcing_per=per)
        chance = Training(Guesser(), Alike(), asked).pieces[0].chance
        assert (
            (len(set(chance.flatten().tolist())) == len(chance))
            == (per == "sequence")
            == bool((chance == chance[:, :1]).all())
        )


def test_every_place_and_every_kind_of_draw_has_a_stream_of_its_own() -> None:
    found = set()
    for place in itertools.product(range(3), Draw, range(3), range(3)):
        draw_from(*place)
        found.add(torch.rand(()).item())
    assert len(found) == 3 * len(Draw) * 9


# --- one step -------------------------------------------------------------------------------------------------


def gradients(objective: nn.Module) -> dict[str, torch.Tensor]:
    return {name: each.grad.clone() for name, each in objective.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("parts", [(40,), (1, 39), (10, 10, 20), (1,) * 40])
def test_the_gradient_of_many_batches_is_that_of_one_big_batch(parts: tuple[int, ...]) -> None:
    """Whatever the padding: the small batches are padded less. And it is torch's own mean over all target tokens."""
    objective, feed = Guesser(dropout=0.0).double(), Rows()
    rows = np.split(np.arange(40), np.cumsum(parts)[:-1])
    optimizer = build_optimizer(objective, settings())
    made = update(objective, optimizer, [feed.batch(part) for part in rows], settings(clip_norm=0.0))
    found = gradients(objective)

    reference = Guesser(dropout=0.0).double()
    batch = feed.batch(np.arange(40))
    loss, count, _ = reference(batch)
    (loss / count).backward()
    for name, gradient in gradients(reference).items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-12)
    assert made.loss / made.count == pytest.approx((loss / count).item())
    norm = nn.utils.clip_grad_norm_(reference.parameters(), math.inf)
    assert made.norm == pytest.approx(norm.item())


def test_a_batch_that_is_not_fresh_goes_on_from_the_one_before() -> None:
    """Truncated backpropagation: the values are those of the whole, the gradient stops between the windows."""
    objective, feed = Guesser(dropout=0.0).double(), Rows()
    whole = feed.batch(np.arange(6))
    loss, count, _ = objective(whole)
    windows = whole.windows(3)
    assert [window.starts_sequence for window in windows][:2] == [True, False]
    assert backpropagate(objective, windows)[:2] == (pytest.approx(loss.item()), count.item())
    apart = [replace_fresh(window) for window in windows]
    assert backpropagate(objective, apart)[0] != pytest.approx(loss.item())


def replace_fresh(batch: Batch) -> Batch:
    return batch._replace(starts_sequence=True)


@pytest.mark.parametrize("clip", [0.0, 1e-3, 0.1, 1e6])
def test_a_step_is_what_torch_does_with_the_mean_its_clipping_and_its_optimizer(clip: float) -> None:
    objective, feed, given = Guesser(dropout=0.0).double(), Rows(), settings(clip_norm=clip, weight_decay=0.3)
    reference = Guesser(dropout=0.0).double()
    matrices = [each for each in reference.parameters() if each.ndim > 1]
    vectors = [each for each in reference.parameters() if each.ndim <= 1]
    plain = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], weight_decay=0.3)
    training = Training(objective, feed, given)
    for step in range(1, 9):
        rows = training.order[training.progress.batch]
        training.advance()
        for group in plain.param_groups:
            group["lr"] = learning_rate_at(step, given)
        loss, count, _ = reference(feed.batch(rows))
        plain.zero_grad()
        (loss / count).backward()
        if clip:
            nn.utils.clip_grad_norm_(reference.parameters(), clip)
        plain.step()
    for one, other in zip(objective.parameters(), reference.parameters(), strict=True):
        # torch adds 1e-6 to the norm before it divides
        torch.testing.assert_close(one, other, rtol=1e-4 if clip else 1e-9, atol=1e-4 if clip else 1e-12)


def test_a_batch_without_a_single_target_changes_no_count_and_breaks_nothing() -> None:
    objective, feed = Guesser(), Rows()
    batch = feed.batch(np.arange(3))
    made = update(
        objective, build_optimizer(objective, settings()), [batch._replace(mask=batch.mask & False)], settings()
    )
    assert made.finite and (made.loss, made.count, made.norm) == (0.0, 0.0, 0.0)
    assert all(torch.isfinite(each).all() for each in objective.parameters())


@pytest.mark.parametrize("poison", ["loss", "gradient", "infinite"])
def test_a_step_that_is_not_finite_changes_nothing(poison: str) -> None:
    class Poisoned(Guesser):
        def forward(self, batch: Batch, state: Any = None) -> tuple[torch.Tensor, torch.Tensor, Any]:
            loss, count, state = super().forward(batch, state)
            if poison == "loss":  # without a trace in the gradient
                return loss + torch.tensor(torch.nan), count, state
            if poison == "gradient":  # the square root of nothing: its value is fine, its slope is not
                return loss + (self.tell.bias - self.tell.bias.detach()).sqrt().sum(), count, state
            return loss * 1e38 * 1e38, count, state

    objective, feed = Poisoned(), Rows()
    optimizer = build_optimizer(objective, settings())
    before = copy_weights(objective)
    assert not update(objective, optimizer, [feed.batch(np.arange(5))], settings()).finite
    assert same(copy_weights(objective), before) and not optimizer.state


def test_some_poisoned_batches_are_skipped_and_counted_and_leave_no_number_that_is_none() -> None:
    run = Run()
    run.feed.texts[3][0] = 0
    run.validate = lambda: {"loss": 1.0}
    run.whole()
    read = [rows for rows in run.feed.asked if len(rows) <= run.feed.size]
    assert run.records[-1].skipped == sum(3 in rows for rows in read) > 0
    assert all(record.loss is None or math.isfinite(record.loss) for record in run.records)
    assert all(torch.isfinite(each).all() for each in run.objective.parameters())


def test_ten_skipped_steps_in_a_row_are_too_many(tmp_path: Path) -> None:
    run = Run(tmp_path, settings(steps=40, checkpoint_every=1, validate_every=40))
    good: dict[str, torch.Tensor] = {}
    ask = run.feed.batch

    def asked(rows: Any) -> Batch:
        batch = ask(rows)
        if len(run.feed.asked) <= 10:
            return batch
        batch.inputs[:, 0] = 0
        return batch

    run.feed.batch = asked
    with pytest.raises(RunError) as error:
        for record in run.walk():
            if record.step == 10:
                good = copy_weights(run.objective)
    assert (record.step, record.skipped) == (10 + SKIPPED_AT_MOST, SKIPPED_AT_MOST)  # what led to it is told first
    last = run.feed.asked[-1]
    assert f"step {10 + SKIPPED_AT_MOST}:" in str(error.value) and "\n" not in str(error.value)
    assert f"the examples {', '.join(map(str, last))}" in str(error.value)
    assert same(copy_weights(run.objective), good)
    assert (found := Checkpoints(tmp_path).find_newest()) is not None and same(found.weights, good)


def test_nine_skipped_steps_in_a_row_are_not_too_many() -> None:
    training = Training(Guesser(), Rows(), settings(steps=200))
    whole = [text.copy() for text in training.feed.texts]
    for _ in range(3):
        for text in training.feed.texts:
            text[0] = 0
        for _ in range(SKIPPED_AT_MOST - 1):
            training.advance()
        for text, kept in zip(training.feed.texts, whole, strict=True):
            text[:] = kept
        training.advance()
    assert training.progress.skipped == 3 * (SKIPPED_AT_MOST - 1)


def test_no_data_is_one_sentence() -> None:
    with pytest.raises(DataError, match="no examples to train on"):
        list(fit(Guesser(), Rows(rows=0), settings(), lambda: {"loss": 0.0}))


# --- what is told ---------------------------------------------------------------------------------------------


def test_every_row_is_read_once_an_epoch_in_the_order_of_the_feed() -> None:
    run = Run(given=settings(steps=21, validate_every=21)).whole()
    order = [rows.tolist() for epoch in range(3) for rows in run.feed.order(epoch)]
    assert run.feed.asked[:-1] == order


def test_where_an_epoch_is_one_batch_every_epoch_is_read_anew() -> None:
    run = Run(given=settings(steps=6, validate_every=6))
    run.feed = Rows(rows=6, size=6)
    run.validate = lambda: {"loss": 1.0}
    run.whole()
    assert run.feed.asked == [rows.tolist() for epoch in range(6) for rows in run.feed.order(epoch)]
    assert len({str(rows) for rows in run.feed.asked}) > 1


def test_there_is_one_record_at_each_step_that_has_one() -> None:
    run = Run(given=settings(steps=32, validate_every=5)).whole()
    expected = {
        step: "end" if step == 32 else "step" if step % 5 else "validation"
        for step in range(1, 33)
        if step == 1 or step == 32 or step % 5 == 0 or step % RECORD_EVERY == 0
    }
    assert {record.step: record.kind for record in run.records} == expected
    assert len(run.records) == len(expected)
    assert all(bool(record.scores) == (record.kind != "step") for record in run.records)


def test_a_records_loss_is_the_sum_since_the_last_one_over_the_count() -> None:
    run = Run(given=settings(steps=20, validate_every=7))
    made: list[tuple[float, float]] = []
    forward = run.objective.forward

    def watched(batch: Batch, state: Any = None) -> Any:
        result = forward(batch, state)
        if run.objective.training:
            made.append((result[0].item(), result[1].item()))
        return result

    run.objective.forward = watched
    run.whole()
    begin = 0
    for record in run.records:
        sums, counts = zip(*made[begin : record.step], strict=True)
        assert record.loss == pytest.approx(sum(sums) / sum(counts), rel=1e-12)
        begin = record.step


def test_a_record_tells_rate_epoch_tokens_and_the_largest_gradient() -> None:
    run = Run(given=settings(steps=20, validate_every=20)).whole()
    read = [rows for rows in run.feed.asked if len(rows) <= run.feed.size]
    for record in run.records:
        assert record.rate == learning_rate_at(record.step, run.settings)
        assert record.epoch == pytest.approx(record.step / 7, abs=1e-6)
        assert record.tokens == sum(len(run.feed.texts[row]) - 1 for rows in read[: record.step] for row in rows)
        assert record.gradient_norm and record.tokens_per_second > 0 and record.seconds > 0
    training = Training(Guesser(), Rows(), run.settings)
    norms = []
    for _ in range(20):
        training.progress.largest_norm = None
        training.advance()
        norms.append(training.progress.largest_norm)
    told = [record.gradient_norm for record in run.records]
    assert told == [norms[0], max(norms[1:10]), max(norms[10:])]
    assert told != sorted(told), "else the largest of all so far would pass for the largest since the last record"


def test_timings_count_steps_and_validations_and_go_on_after_a_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock by which a batch takes two seconds and a validation, with its batch, five."""
    now = [100.0]
    monkeypatch.setattr(loop, "perf_counter", lambda: now[0])

    def timed(run: Run) -> Run:
        ask, calm = run.feed.batch, run.validate

        def batch(rows: Any) -> Batch:
            now[0] += 2
            return ask(rows)

        def validate() -> dict[str, float]:
            now[0] += 3
            return calm()

        run.feed.batch, run.validate = batch, validate
        return run

    run = timed(Run(tmp_path))
    for _ in itertools.islice(run.walk(), 3):
        pass
    now[0] += 1000  # between the processes
    records = timed(run.rebuilt()).whole().records
    begin = tokens = 0
    for record in records:
        validations = record.step // 5 + (record.kind == "end")
        # saved at step 8 and told up to step 10, it went on with step 9
        ahead = 2 if record.step % 4 == 0 and record.kind != "end" else 0  # a checkpoint looks at the next batch
        assert record.seconds == 2 * record.step + 5 * validations + ahead
        assert record.tokens_per_second == (record.tokens - tokens) / (2 * (record.step - begin))
        begin, tokens = record.step, record.tokens


def test_what_a_killed_process_left_is_swept_at_the_start(tmp_path: Path) -> None:
    (tmp_path / ".step-3.partial").mkdir()
    run = Run(tmp_path)
    for _ in itertools.islice(run.walk(), 1):
        assert not (tmp_path / ".step-3.partial").exists()


def test_tokens_are_those_of_source_and_target_without_padding() -> None:
    mask, source = torch.tensor([[True, True, False]]), torch.tensor([[True, True, True, True, False]])
    batch = Batch(torch.zeros(1, 3), mask, torch.zeros(1, 3), (torch.zeros(1, 5, dtype=torch.int64), source))
    assert count_tokens(batch) == 6 and count_tokens(batch._replace(source=())) == 2


def losses(*values: float) -> Any:
    given = iter(values)
    return lambda: {"loss": next(given), "other": 1.0}


def test_best_is_the_lowest_validation_loss_so_far_and_nan_never_is() -> None:
    run = Run(given=settings(steps=35))
    run.validate = losses(math.nan, 3.0, 3.0, 2.0, math.inf, 2.5, 1.0)
    run.whole()
    told = [record for record in run.records if record.scores]
    assert [record.best for record in told] == [False, True, False, True, False, False, True]
    assert replace_nonfinite(make_record_json(told[0]))["scores"] == {"loss": None, "other": 1.0}
    assert same(run.best, copy_weights(run.objective))


@pytest.mark.parametrize(("patience", "validations"), [(1, 3), (2, 6), (3, 9), (0, 10)])
def test_training_stops_after_so_many_validations_without_progress(patience: int, validations: int) -> None:
    run = Run(given=settings(steps=50, patience=patience))
    run.validate = (
        losses(5.0, 4.0, 4.0, 3.0, 3.0, 3.5, 2.0, 2.0, 2.0, 2.0)
        if patience != 3
        else losses(5.0, 4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 1.0)
    )
    run.whole()
    told = [record for record in run.records if record.scores]
    assert len(told) == validations and [record.kind for record in told[:-1]] == ["validation"] * (validations - 1)
    assert told[-1].kind == "end"


def test_records_are_json_and_scores_are_only_where_there_are_some() -> None:
    for record in Run().whole().records:
        line = json.loads(json.dumps(make_record_json(record), allow_nan=False))
        assert ("scores" in line) == ("best" in line) == (record.kind != "step")
        assert Record(**line) == record


def test_it_learns() -> None:
    """The tiny rows are noise, yet each of them can be learned by heart."""
    run = Run(given=settings(steps=400, learning_rate=0.05, validate_every=100))
    run.objective = Guesser(dropout=0.0, size=24)
    run.validate = validation(run.objective, run.feed)
    run.whole()
    assert run.records[0].loss and run.records[0].loss > math.log(12) * 0.8
    assert run.records[-1].scores["loss"] < 0.8


def test_a_checkpoint_is_made_when_due_and_at_the_end(tmp_path: Path) -> None:
    saved: list[int] = []

    class Noted(Checkpoints):
        def save(self, checkpoint: Checkpoint) -> None:
            saved.append(checkpoint.step)
            super().save(checkpoint)

    run = Run(given=settings(steps=10, checkpoint_every=4))
    run.checkpoints = Noted(tmp_path)
    run.whole()
    assert saved == [4, 8, 10]
