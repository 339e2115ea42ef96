"""What waits runs together, each with its own answer, the same as alone; what is bad or given up fails alone."""

import asyncio
import threading
import time

import pytest

from seqloom.errors import DataError
from seqloom.search import Abandoned
from seqloom.serve.batching import Batcher
from seqloom.serve.engine import Engine
from seqloom.serve.jobs import Job
from seqloom.serve.limits import Limits, Refused
from seqloom.serve.metrics import Metrics
from seqloom.serve.runs import Runs
from seqloom.serve.writing import Writing

from .conftest import CHANCE, WORDS, tell

TEXTS = [" ".join(CHANCE.choices(WORDS, k=1 + number % 23)) for number in range(64)]
LETTERS = ["".join(CHANCE.choices("abcdefgh", k=1 + number % 5)) for number in range(64)]


class Fake:
    """A folder of runs in which every name is a model: itself."""

    def check(self, name):
        return name

    def load(self, name):
        return name


@pytest.fixture
def batcher():
    """One that holds its first job until it is told to go, so that the others have to wait together."""
    found = Batcher(Fake(), Limits(batch=8, queue=40), Metrics())
    found.start()
    yield found
    found.close()


def hold(batcher):
    """Keep the thread busy until the event is set."""
    event, busy = threading.Event(), threading.Event()

    def work(model, payloads):
        busy.set()
        event.wait(10)
        return payloads

    batcher.submit([Job("run", work)])
    busy.wait(10)
    return event


def test_what_waits_runs_together_sorted_by_length_and_each_has_its_own_answer(batcher):
    seen = []

    def work(model, payloads):
        seen.append(payloads)
        return [payload * 10 for payload in payloads]

    event = hold(batcher)
    jobs = [Job("run", work, number, "same", size=-number) for number in range(20)]
    batcher.submit(jobs)
    event.set()
    assert [job.future.result(10) for job in jobs] == [number * 10 for number in range(20)]
    assert seen == [list(range(7, -1, -1)), list(range(15, 7, -1)), list(range(19, 15, -1))]


def test_other_runs_and_other_ways_of_asking_are_other_batches(batcher):
    seen = []

    def work(model, payloads):
        seen.append((model, payloads))
        return payloads

    event = hold(batcher)
    jobs = [Job("ab"[number % 2], work, number, ("way", number // 4), number) for number in range(8)]
    batcher.submit(jobs)
    event.set()
    assert [job.future.result(10) for job in jobs] == list(range(8))
    assert seen == [("a", [0, 2]), ("b", [1, 3]), ("a", [4, 6]), ("b", [5, 7])]


@pytest.mark.parametrize("error", [DataError("bad"), ZeroDivisionError(), SystemExit(3), KeyboardInterrupt()])
def test_a_poisoned_input_fails_alone(batcher, error):
    def work(model, payloads):
        if 5 in payloads:
            raise error
        return payloads

    event = hold(batcher)
    jobs = [Job("run", work, number, "same") for number in range(8)]
    batcher.submit(jobs)
    event.set()
    for number, job in enumerate(jobs):
        if number == 5:
            with pytest.raises(type(error) if isinstance(error, Exception) else RuntimeError):
                job.future.result(10)
        else:
            assert job.future.result(10) == number
    assert batcher.alive


def test_a_cancelled_input_is_never_begun(batcher):
    seen = []
    event = hold(batcher)
    jobs = [Job("run", lambda model, payloads: seen.extend(payloads) or payloads, n, "same") for n in range(4)]
    batcher.submit(jobs)
    jobs[2].cancel()
    event.set()
    assert [jobs[n].future.result(10) for n in (0, 1, 3)] == [0, 1, 3]
    with pytest.raises(Abandoned):
        jobs[2].future.result(10)
    assert seen == [0, 1, 3]


def test_beyond_the_queue_is_refused_at_once_all_or_nothing(batcher):
    event = hold(batcher)
    batcher.submit([Job("run", lambda model, payloads: payloads, n, "same") for n in range(39)])
    begun = time.monotonic()
    with pytest.raises(Refused) as refused:
        batcher.submit([Job("run", lambda model, payloads: payloads) for _ in range(2)])
    assert time.monotonic() - begun < 0.1
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    last = Job("run", lambda model, payloads: payloads, "fits")
    batcher.submit([last])
    event.set()
    assert last.future.result(10) == "fits"


def test_texts_take_turns_with_batches_and_with_one_another(batcher):
    seen = []

    def slow(name):
        def work(model, payloads):
            for number in range(5):
                time.sleep(0.006)
                yield (name, number)

        return work

    jobs = [Job("run", slow(name), deliver=seen.append) for name in "ab"]
    batcher.submit(jobs)
    short = Job("run", lambda model, payloads: [seen.append("batch")])
    batcher.submit([short])
    for job in jobs:
        job.future.result(10)
    assert [item for item in seen if item[0] == "a"] == [("a", number) for number in range(5)]
    assert seen.index(("b", 0)) < seen.index(("a", 4))  # neither waited for the other's end
    assert seen.index("batch") < seen.index(("a", 4))


def test_an_answer_that_nobody_waits_for_harms_nobody(batcher):
    """A handler that is cancelled cancels the future that it waits for, whatever the thread is doing."""
    event = hold(batcher)
    jobs = [Job("run", lambda model, payloads: payloads, n, "same") for n in range(3)]
    bad = Job("run", lambda model, payloads: 1 / 0)
    text = Job("run", lambda model, payloads: range(3), deliver=lambda item: None)
    batcher.submit([*jobs, bad, text])
    for job in (jobs[1], bad, text):
        job.future.cancel()
    event.set()
    assert [jobs[n].future.result(10) for n in (0, 2)] == [0, 2]
    last = Job("run", lambda model, payloads: payloads, "on it goes")
    batcher.submit([last])
    assert last.future.result(10) == "on it goes"


def test_a_text_that_is_given_up_stops(batcher):
    seen, ended = [], threading.Event()

    def work(model, payloads):
        try:
            while True:
                time.sleep(0.001)
                yield len(seen)
        finally:
            ended.set()

    job = Job("run", work, deliver=seen.append)
    batcher.submit([job])
    while len(seen) < 5:
        time.sleep(0.01)
    job.cancel()
    with pytest.raises(Abandoned):
        job.future.result(10)
    count = len(seen)
    assert ended.wait(10)
    time.sleep(0.1)
    assert len(seen) == count


def test_liveness_is_the_heartbeat_of_the_thread():
    batcher = Batcher(Fake(), Limits(seconds=0.5), Metrics())
    assert not batcher.alive
    batcher.start()
    assert batcher.alive
    event = hold(batcher)
    time.sleep(0.6)
    assert not batcher.alive  # one job holds it up for longer than any may take
    event.set()
    time.sleep(0.4)
    assert batcher.alive
    batcher.close()
    assert not batcher.alive


def test_closing_finishes_what_is_here_and_takes_nothing_more():
    batcher = Batcher(Fake(), Limits(), Metrics())
    batcher.start()
    event = hold(batcher)
    jobs = [Job("run", lambda model, payloads: payloads, number) for number in range(5)]
    batcher.submit(jobs)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    while not batcher._closing:
        time.sleep(0.01)
    with pytest.raises(Refused, match="shutting down"):
        batcher.submit([Job("run", lambda model, payloads: payloads)])
    event.set()
    closing.join(10)
    assert [job.future.result(0) for job in jobs] == list(range(5))


# --- with models ---


def near(told, alone):
    """The same answer; sums in another order may differ in their last digits, and seconds are seconds."""
    if isinstance(told, dict):
        assert told.keys() == alone.keys()
        for key in told.keys() - {"seconds"}:
            near(told[key], alone[key])
    elif isinstance(told, list):
        assert len(told) == len(alone)
        for pair in zip(told, alone, strict=True):
            near(*pair)
    elif isinstance(told, float):
        assert told == pytest.approx(alone, abs=1e-5)
    else:
        assert told == alone


def law(runs, run, inputs, ask, times):
    """All at once, in several orders: the answers are those that each gets alone."""
    metrics = Metrics()
    engine = Engine(Runs(runs, Limits(), metrics), Limits(), metrics)
    engine.batcher.start()

    async def alone():
        return [(await ask(engine, run, [one]))[0] for one in inputs]

    async def together(order):
        return await asyncio.gather(*(ask(engine, run, [inputs[place]]) for place in order))

    expected = asyncio.run(alone())
    before = sum(metrics._histograms["seqloom_batch_size"].counts)
    for _ in range(times):
        order = CHANCE.sample(range(len(inputs)), len(inputs))
        for place, [answer] in zip(order, asyncio.run(together(order)), strict=True):
            near(answer, expected[place])
    batches = sum(metrics._histograms["seqloom_batch_size"].counts) - before
    engine.batcher.close()
    assert batches <= times * len(inputs) / 8  # they did run together
    assert len({str(answer) for answer in expected}) > len(inputs) / 4  # and not all answers are the same


async def predict(engine, run, inputs):
    return await engine.predict(run, inputs)


async def draw(engine, run, inputs):
    return await engine.answer(run, inputs, Writing(max_tokens=8, temperature=0.9, seed=3, count=2))


@pytest.mark.parametrize(
    ("run", "inputs", "ask"),
    [("mood", TEXTS, predict), ("tags", TEXTS, predict), ("backwards", LETTERS, predict), ("backwards", LETTERS, draw)],
    ids=["labels", "tags", "beam", "drawn"],
)
def test_sixty_four_at_once_get_the_answers_they_get_alone(runs, run, inputs, ask):
    law(runs, run, inputs, ask, times=3)


@pytest.mark.soak
def test_sixty_four_at_once_a_thousand_times(runs):
    law(runs, "mood", TEXTS, predict, times=1000)
    tell("1,000 times 64 inputs at once, each with the answer it gets alone")
