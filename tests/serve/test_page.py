"""The page in the real browser, with no network but its server: by mouse, by keyboard, on a phone, at night."""

import shutil
import threading
import time
import urllib.request
from contextlib import contextmanager
from importlib import resources

import numpy as np
import pytest

from seqloom.config.recipe import Recipe
from seqloom.look.views import VIEWS
from seqloom.runs.folder import RECORDS, SCORES
from seqloom.runs.run import train
from seqloom.serve.app import create_app
from seqloom.serve.limits import Limits
from seqloom.serve.server import create_server

from ..browser import chromium
from .conftest import FEW, LABELED, Server

EVIL = "<img src=x onerror=alert(1)></script><b id=evil>"
TABS = ("try", "training", "pictures", "slider", "pull", "guess")
PAUSE = 30_000  # milliseconds that a busy machine may take


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(runs, tmp_path_factory):
    """A server of some of the runs, of one whose labels are markup, and of one that trains right now."""
    folder = tmp_path_factory.mktemp("site") / "runs"
    for name in ("text", "backwards", "mood", "tags", "walk", "tune", "caption", "draw", "notes", "body"):
        shutil.copytree(runs / name, folder / name)
    evil = [(text + f" {EVIL}", EVIL if label == "glad" else "sad & <low>") for text, label in LABELED]
    recipe = Recipe.of({"task": "classify"}).override(*FEW, "data.source_tokenizer=words")
    list(train(recipe, folder / "evil", examples={part: evil for part in ("train", "validation", "test")}))
    shutil.copytree(runs / "mood", folder / "live")
    (folder / "live" / SCORES).unlink()
    found = Server(folder)
    found.folder = folder
    yield found
    found.stop()


@contextmanager
def opened(browser, site, path="", **how):
    """A page of the site. Nothing may be asked of anybody else, and the console has to stay silent."""
    context, told = browser.new_context(**how), []
    page = context.new_page()
    page.set_default_timeout(PAUSE)
    page.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith((site.url, "data:", "blob:")) else told.append(one.url))
    page.on("dialog", lambda one: (told.append(f"a dialog: {one.message}"), one.dismiss()))
    page.goto(f"{site.url}/{path}")
    try:
        yield page
        assert told == []
    finally:
        context.close()


MARKS = ", ".join(
    [
        *(
            f"svg .mark-{one}"
            for one in ("rect path", "line path", "symbol path", "area path", "rule line", "text text")
        ),
        "img",
    ]
)


def has_marks(page, place):
    """Whether the chart in a place has drawn something."""
    page.wait_for_selector(f"{place} .chart :is(svg path, img)", state="attached")
    return page.locator(f"{place} .chart :is({MARKS})").count() > 0


class Threaded:
    """A server in a thread of this process, which comes up at once."""

    def __init__(self, folder, token=""):
        app, limits = create_app(folder, token=token), Limits()
        self.server = create_server(app, limits, "127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)


def test_the_first_page_shows_every_run_with_its_baselines(browser, site):
    (site.folder / "live" / RECORDS).touch()  # a record has just been written
    with opened(browser, site) as page:
        cards = page.locator(".card")
        cards.first.wait_for()
        assert cards.count() == 12
        mood = cards.filter(has=page.get_by_role("link", name="mood"))
        assert "this run" in mood.inner_text() and "most frequent" in mood.inner_text()
        assert "training now" in cards.filter(has=page.get_by_role("link", name="live")).inner_text()
        page.get_by_label("compare mood").check()
        with page.expect_response(f"{site.url}/runs"):  # a run trains, so the list is renewed; what is ticked stays so
            page.get_by_label("compare evil").check()
        page.get_by_role("button", name="Compare these two").click()
        page.get_by_role("heading", name="mood beside evil").wait_for()
        assert page.locator("tbody tr").count() >= 2
        assert has_marks(page, "main")


def test_an_empty_folder_shows_how_to_make_a_first_run(browser, tmp_path):
    site = Threaded(tmp_path)
    try:
        with opened(browser, site) as page:
            page.get_by_role("heading", name="No run here yet").wait_for()
            command = page.locator("pre").first.inner_text()
            assert command == f"seqloom train seq2seq --into {tmp_path.name}/dates"
            (tmp_path / "dates").mkdir()
            page.get_by_text("1 folder here is no run, or not yet").wait_for()  # without being asked again
    finally:
        site.stop()


TYPED = {
    "mood": ("a good film", ".bars"),
    "tags": ("a good film", ".chip small"),
    "backwards": ("abc", ".answer"),
    "text": ("7 green bot", "#temperature"),
    "walk": (
        "\n".join(["1, 2"] * 3 + [", 2"] + ["1.5, 3"] * 4),
        '.mark-rule line[stroke="#CC0000"]',
    ),  # where one is missing
    "tune": ("X:1\nM:4/4\nL:1/8\nK:D\n|:DEFG ABAB|", "#temperature"),
    "draw": ("a red square", "canvas"),
    "caption": (None, ".answer"),  # which is picked, not typed
    "notes": (None, ".chips"),
    "body": ("7 green ___ hanging", ".answer"),
}


def give(page, run):
    """Type what the run is asked, or wait for the test example that is picked at first."""
    typed = TYPED[run][0]
    if typed is None:
        page.locator("section[aria-label=Input] .pixels").first.wait_for()
    else:
        page.get_by_label("Type or paste").fill(typed)


@pytest.mark.parametrize("run", TYPED)
def test_every_task_answers_what_is_typed(browser, site, run):
    with opened(browser, site, f"#/runs/{run}") as page:
        give(page, run)
        page.locator(f"section[aria-label=Answer] {TYPED[run][1]}").first.wait_for(state="attached")


@pytest.mark.parametrize("run", ["backwards", *(pytest.param(run, marks=pytest.mark.soak) for run in TYPED)])
def test_every_picture_that_fits_is_drawn(browser, site, run):
    with opened(browser, site, f"#/runs/{run}/pictures") as page:
        give(page, run)
        buttons = page.locator("button[aria-pressed]")
        buttons.first.wait_for()
        page.get_by_text("More pictures").click()
        assert buttons.count() >= 12
        for number in range(buttons.count()):
            button = buttons.nth(number)
            with page.expect_response(lambda answer: "/look" in answer.url):
                button.click()
            page.wait_for_function("() => !document.querySelector('[aria-busy]')")
            assert has_marks(page, "figure"), button.inner_text()


def test_every_view_stands_below_a_question_and_none_twice(browser, site):
    with opened(browser, site) as page:
        listed = page.evaluate(
            "async () => { const {QUESTIONS, FURTHER} = await import('/static/views.js');"
            " return [...QUESTIONS, ...FURTHER].flatMap(([, titles]) => Object.keys(titles)); }"
        )
    assert sorted(listed) == sorted(VIEWS)


def test_the_answer_is_that_of_the_latest_text(browser, site, offline):
    with opened(browser, site, "#/runs/mood") as page:
        area = page.get_by_label("Type or paste")
        area.press_sequentially("awful bad awful good film", delay=15)
        best = offline("mood").predict("awful bad awful good film")[0]
        shown = f"{100 * best.probability:.0f} %"
        seen = "() => ['.answer', '.bars .value'].map(one => document.querySelector(one)?.innerText).join('|')"
        page.wait_for_function(f"told => ({seen})() === told", arg=f"{best.output}|{shown}")


def test_a_word_shows_what_it_attends_to(browser, site, offline):
    with opened(browser, site, "#/runs/backwards") as page:
        page.get_by_label("Type or paste").fill("abc")
        page.get_by_role("heading", name="What it attended to").wait_for()
        rows = page.locator("section", has=page.get_by_role("heading", name="What it attended to")).locator(".chips")
        page.wait_for_function(
            "() => document.querySelectorAll('.chips')[1]?.innerText.replaceAll('\\n', '') === 'abc'"
        )
        rows.nth(1).locator(".chip").nth(1).hover()
        inks = [float(one.evaluate("one => one.style.opacity")) for one in rows.nth(0).locator(".ink").all()]
        weights = offline("backwards").look("abc").measure("attention").weights.mean(0)[1]
        assert inks == pytest.approx((0.75 * weights[: len(inks)]).tolist(), abs=1e-3)


def test_why_has_its_faithfulness(browser, site):
    with opened(browser, site, "#/runs/mood") as page:
        page.get_by_label("Type or paste").fill("a good film")
        page.get_by_role("button", name="Why this answer?").click()
        assert "random orders" in page.get_by_text("Faithfulness").first.inner_text()
        page.get_by_text("What is faithfulness?").click()
        page.get_by_role("button", name="Draw that test").click()
        page.locator("button[aria-pressed=true]", has_text="Is that attribution true?").wait_for()
        assert has_marks(page, "figure")


def test_the_temperature_moves_the_bars_and_text_is_written_on(browser, site):
    with opened(browser, site, "#/runs/text") as page:
        page.get_by_label("Type or paste").fill("7 green bot")
        first = page.locator(".bars .value").first
        first.wait_for()
        before = float(first.inner_text().split()[0])
        page.get_by_label("Temperature").fill("0.2")
        assert float(first.inner_text().split()[0]) > before
        page.get_by_label("Temperature").fill("0")
        assert first.inner_text() == "100 %"
        page.get_by_role("button", name="Write on from here").click()
        page.wait_for_function("() => document.querySelector('.passage')?.textContent.length > 100")


def test_a_run_that_trains_is_followed(browser, site):
    records = site.folder / "live" / RECORDS
    lines = records.read_text().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines, 1) if '"step", "step"' in line.replace(":", ","))
    records.write_text("".join(lines[:first]))
    with opened(browser, site, "#/runs/live/training") as page:
        status = page.locator("p[role=status]")
        page.wait_for_function("() => document.querySelector('p[role=status]')?.innerText.startsWith('Live: Step')")
        before = status.inner_text()
        with records.open("a") as file:
            file.write("".join(lines[first:]))
        page.wait_for_function("before => document.querySelector('p[role=status]').innerText !== before", arg=before)
        assert has_marks(page, "main")


def test_checkpoints_pulls_and_guesses(browser, site):
    with opened(browser, site, "#/runs/mood/slider") as page:
        page.get_by_label("Type or paste").fill("a good film")
        page.get_by_label("After").fill("0")
        page.get_by_text("step 0: nothing learned yet").first.wait_for()
        page.goto(f"{site.url}/#/runs/mood/pull")
        page.get_by_label("Type or paste").fill("a good film")
        page.get_by_text("Nothing is changed yet").wait_for()
        names = page.locator("#place option").all_inner_texts()
        assert names[0].startswith("reset gate r (opens the old state) of ") and "update gate u (keeps)" in names[1]
        page.get_by_label("Where").select_option(label=names[-1])
        page.get_by_label("while it reads").select_option("")
        page.locator("#value").fill("0")
        page.get_by_text("Now:").wait_for()
        page.get_by_role("button", name="Write it into the ledger").click()
        row = page.locator(".ledger tbody tr").inner_text()
        assert "every step" in row and "× 0" in row
        page.get_by_role("button", name="Close each of them once").click()
        page.wait_for_function("() => document.querySelectorAll('.ledger tbody tr').length === 1 + place.length")
        page.goto(f"{site.url}/#/runs/text/guess")
        for number in range(1, 4):
            page.get_by_role("button", name="Show me").click()
            page.get_by_role("heading", name=f"After {number} of 24").wait_for()
        assert page.locator(".bars .value").count() == 3


def test_a_span_is_dragged_over_or_pressed_and_found_elsewhere(browser, site):
    with opened(browser, site, "#/runs/text/pull") as page:
        chips = page.get_by_role("group", name="Choose a span").locator(".chip")
        chosen = "all => all.flatMap((one, at) => one.getAttribute('aria-pressed') === 'true' ? [at] : [])"
        page.wait_for_load_state("networkidle")  # what arrives late moves the words
        chips.nth(4).hover()
        page.mouse.down()
        chips.nth(6).hover()
        page.mouse.up()
        assert chips.evaluate_all(chosen) == [4, 5, 6]
        chips.nth(9).press("Enter")  # by keyboard the last, then the first
        chips.nth(8).press("Enter")
        assert chips.evaluate_all(chosen) == [8, 9]
        chips.nth(3).press("Enter")
        page.get_by_role("button", name="Find where else").click()
        marks = page.locator(".found mark")
        marks.first.wait_for()
        assert marks.count() == 20 and {len(mark) for mark in marks.all_inner_texts()} == {1}
        assert "picked at random" in page.locator("section", has=page.locator(".found")).last.inner_text()


ENDLESS = """() => {
  const ask = fetch;
  window.given_up = [];
  window.fetch = (path, how) => path !== "/explain" ? ask(path, how) : new Promise((_, fail) =>
    how.signal.addEventListener("abort", () => { given_up.push(path); fail(how.signal.reason); }));
}"""


def test_who_goes_on_gives_up_what_was_asked(browser, site):
    """What nobody waits for any more must not hold up the next page."""
    with opened(browser, site, "#/runs/mood") as page:
        give(page, "mood")
        page.evaluate(ENDLESS)
        page.get_by_role("button", name="Why this answer?").click()
        page.get_by_role("link", name="Pull it").first.click()
        page.wait_for_function("() => given_up.includes('/explain')")


def test_words_and_their_tags_are_told_by_the_tags_and_explained_by_the_words(browser, site):
    """The answer says every word again, which does not count: 300 characters and their tags are not too long."""
    with opened(browser, site, "#/runs/tags") as page:
        page.get_by_label("Type or paste").fill("good film the plot " * 15)
        page.get_by_role("button", name="Why this answer?").click()
        page.get_by_text("Faithfulness").first.wait_for()
        page.goto(f"{site.url}/#/runs/tags/pull")
        page.get_by_label("Type or paste").fill("good film")
        page.get_by_text("Without the pull").wait_for()
        assert "film" not in page.locator("p", has_text="Without the pull").inner_text()


def test_a_picture_has_its_words_and_light_on_its_squares(browser, site):
    with opened(browser, site, "#/runs/caption") as page:
        give(page, "caption")
        page.get_by_role("heading", name="What it attended to").wait_for()
        page.locator(".chips .chip").first.hover()
        inks = page.locator(".over .grid span").evaluate_all("all => all.map(one => Number(one.style.opacity))")
        assert len(inks) == 4 and min(inks) == 0 < max(inks) < 0.85  # the most attended is the lightest
        row, column = divmod(inks.index(0), 2)
        said = page.locator("section p[role=status]").inner_text()
        assert f"the square in row {row + 1}, column {column + 1}" in said


def test_a_drawing_is_shown_as_one_wherever_it_is_an_answer(browser, site, offline):
    """Square by square where it attends, and before and after a pull; never as the numbers of its squares."""
    with opened(browser, site, "#/runs/draw") as page:
        give(page, "draw")
        tiles = page.locator(".squares canvas")
        tiles.first.wait_for()
        drawn = np.array(offline("draw").predict("a red square")[0].pixels)
        colors = "all => all.map(one => [...one.getContext('2d').getImageData(0, 0, 1, 1).data.slice(0, 3)])"
        assert tiles.evaluate_all(colors) == drawn[::2, ::2].reshape(-1, 3).tolist()
        tiles.nth(5).hover()
        assert page.locator("section p[role=status]").inner_text().startswith("The square in row 2, column 2 attended")
        page.goto(f"{site.url}/#/runs/draw/pull")
        give(page, "draw")
        page.get_by_role("button", name="Close each of them once").click()
        page.locator(".ledger canvas").first.wait_for()
        page.locator("p", has_text="Without the pull").locator("canvas").wait_for()


def test_gates_are_read_under_the_cursor(browser, site, offline):
    """The step that the mouse is nearest to is marked in every panel, with its element, the gate's mean and band."""
    [trace, *_] = [one for one in offline("text").look("7 green").measure("gates") if one.gates]
    with opened(browser, site, "#/runs/text/pictures") as page:
        page.get_by_label("Type or paste").fill("7 green")
        page.get_by_role("button", name="Gates", exact=True).click()
        words = "figure .mark-text.role-mark text"
        page.wait_for_function(
            f"many => document.querySelectorAll('{words}').length === many", arg=2 * len(trace.steps)
        )
        page.locator("figure .chart").scroll_into_view_if_needed()
        place = page.locator("figure .mark-symbol path").nth(2).bounding_box()
        page.mouse.move(place["x"], place["y"])
        page.mouse.move(place["x"] + 1, place["y"] + 1)
        shown = "all => all.filter(one => one.getAttribute('opacity') === '1').map(one => one.textContent)"
        page.wait_for_function(f"() => ({shown})([...document.querySelectorAll('{words}')]).length === 2")
        told = page.locator(words).evaluate_all(shown)
        numbers = [[trace.mean(gate)[2], *(edge[2] for edge in trace.quantiles(gate))] for gate in trace.gates]
        assert told == [f"{trace.steps[2]}: {mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in numbers]


def test_by_keyboard_alone(browser, site):
    """From the address bar to a run, an answer and a picture, and nothing is out of reach."""
    with opened(browser, site) as page:
        page.locator(".card").first.wait_for()

        def reach(words):
            for _ in range(80):
                page.keyboard.press("Tab")
                found = page.evaluate("() => [document.activeElement.innerText, document.activeElement.id].join('|')")
                if words in found:
                    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
                    assert outline != "none", f"{words}: nobody sees where the focus is"
                    return
            raise AssertionError(f"{words} cannot be reached by Tab")

        reach("mood")
        page.keyboard.press("Enter")
        page.get_by_label("Type or paste").wait_for()
        reach("input")
        page.keyboard.type("a good film")
        page.locator(".bars").first.wait_for()
        reach("Why this answer?")
        page.keyboard.press("Enter")
        page.get_by_text("Faithfulness").first.wait_for()
        reach("Pictures of what happens inside")
        page.keyboard.press("Enter")
        page.locator("details figure").first.wait_for()
        reach("States")
        page.keyboard.press("Enter")
        page.locator("button[aria-pressed=true]", has_text="States").wait_for()
        page.locator("details figure .chart svg").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_sticks_out(browser, site, scheme):
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "has_touch": True}
    with opened(browser, site, **phone) as page:
        page.locator(".card").first.wait_for()
        for path in ("", *(f"runs/text/{tab}" for tab in TABS), "runs/backwards/pull", "compare/mood/evil"):
            page.goto(f"{site.url}/#/{path}")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), path
            heights = page.evaluate(
                "() => [...document.querySelectorAll('button, .tabs a')].map(one => one.getBoundingClientRect().height)"
            )
            assert [height for height in heights if 0 < height < 30] == [], path  # large enough for a finger


def test_on_a_phone_a_picture_is_chosen_from_a_list(browser, site):
    """There is no room for a button for each."""
    with opened(browser, site, "#/runs/mood/pictures", viewport={"width": 390, "height": 740}) as page:
        give(page, "mood")
        page.get_by_label("Picture").select_option(label="States")
        page.get_by_role("heading", name="Values of the states at every step").wait_for()
        assert page.locator("button[aria-pressed]").count() == 0


def test_the_end_of_an_answer_is_said_in_words(browser, site):
    with opened(browser, site, "#/runs/backwards") as page:
        page.get_by_label("Type or paste").fill("abc")
        page.get_by_role("heading", name="What it attended to").wait_for()
        page.get_by_text("Pictures of what happens inside").click()
        page.get_by_role("button", name="Attention", exact=True).click()
        page.locator("figure .chart svg", has_text="(end)").wait_for()
        assert page.get_by_text("(end)").count() and not page.get_by_text("<eos>").count()


AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
SERIOUS = """async () => (await axe.run()).violations.filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.map(node => node.html.slice(0, 120)).join(" | "))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, site, scheme):
    with opened(browser, site, color_scheme=scheme, bypass_csp=True) as page:
        for path in (
            "",
            "compare/mood/evil",
            *(f"runs/text/{tab}" for tab in TABS),
            "runs/walk/try",
            "runs/backwards/try",
        ):
            page.goto(f"{site.url}/#/{path}")
            page.wait_for_load_state("networkidle")
            page.evaluate(AXE)
            assert page.evaluate(SERIOUS) == [], path


def test_markup_stays_text(browser, site):
    with opened(browser, site, "#/runs/evil") as page:
        page.get_by_label("Type or paste").fill(f"good {EVIL}")
        page.locator(".answer").wait_for()
        assert page.locator(".answer").inner_text() in (EVIL, "sad & <low>")
        page.get_by_role("button", name="Why this answer?").click()
        page.get_by_text("Faithfulness").first.wait_for()
        page.get_by_text("Pictures of what happens inside").click()
        page.locator("details figure .chart svg").wait_for()
        page.get_by_text("More pictures").click()
        for name in ("What could come next", "Nearest symbols", "The network, drawn"):
            page.get_by_role("button", name=name).click()
            page.wait_for_load_state("networkidle")
        assert page.locator("#evil").count() == 0 and page.locator("img[src=x]").count() == 0


def test_the_page_says_so_when_its_server_is_gone(browser, runs, tmp_path):
    shutil.copytree(runs / "mood", tmp_path / "mood")
    site = Threaded(tmp_path)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.url}/#/runs/mood")
    page.get_by_label("Type or paste").wait_for()
    site.stop()
    page.get_by_label("Type or paste").fill("a good film")
    page.get_by_text("the server does not answer").wait_for(timeout=PAUSE)
    context.close()


def test_a_token_is_asked_for_once(browser, runs, tmp_path):
    shutil.copytree(runs / "mood", tmp_path / "mood")
    site = Threaded(tmp_path, token="open sesame")
    try:
        context = browser.new_context()
        page = context.new_page()
        page.goto(site.url)
        page.get_by_label("The token").fill("open sesame")
        page.get_by_role("button", name="Enter").click()
        page.locator(".card").wait_for(timeout=PAUSE)
        page.goto(f"{site.url}/#token=wrong")
        page.reload()
        page.get_by_label("The token").wait_for(timeout=PAUSE)
        page.goto(f"{site.url}/#token=open%20sesame")
        page.reload()
        page.locator(".card").wait_for(timeout=PAUSE)
        assert "sesame" not in page.url
        context.close()
    finally:
        site.stop()


def test_words_of_the_page_are_no_secrets_of_the_machine(site):
    """Nothing that the server says of a folder names where it lies."""
    for path in ("/runs", "/runs/mood", "/runs/mood/examples", "/docs"):
        told = urllib.request.urlopen(site.url + path).read().decode()
        assert str(site.folder.parent) not in told


def test_every_score_and_baseline_is_explained_in_words(browser, site):
    """Of every task, whatever stands beside its bars; and the rest of a card needs no knowledge of signs."""
    with opened(browser, site) as page:
        told = page.evaluate(
            "async () => { const {glossary} = await import('/static/words.js');"
            " const {runs} = await (await fetch('/runs')).json(); return runs.map(run => [run.name, run.network,"
            " Object.keys(run.scores), Object.values(run.scores).flatMap(one => Object.keys(one.baselines)),"
            " [...glossary(run.scores).querySelectorAll('strong')].map(one => one.textContent)]); }"
        )
        assert {name for name, *_ in told} >= set(TYPED)
        for name, _, scores, baselines, explained in told:
            bare = {score.partition(" (")[0].partition(" of ")[0] for score in scores}
            assert bare | set(baselines) == set(explained), name
        page.locator(".card", has=page.get_by_role("link", name="mood")).get_by_text("of size 16, 1 layer").wait_for()
        page.goto(f"{site.url}/#/runs/mood/training")
        page.get_by_text("What do these words mean?").click()
        page.get_by_text("most frequent: always the commonest answer of training.").wait_for()


def test_what_real_examples_reach_is_no_baseline(browser, site):
    score = {"value": 1, "interval": [0.9, 1.1], "better": "higher", "scale": "0 to 2"}
    with opened(browser, site) as page:
        verdict = (
            "async score => { const {scores} = await import('/static/runs.js');"
            " return scores({scores: {score}}).flat(9).map(one => one?.textContent).filter(Boolean).join('|'); }"
        )
        for baselines, says in {
            ("real images", 2.0): "better than every baseline",
            ("most frequent", 2.0): "worse than the best baseline",
        }.items():
            others = {"chance": 0.5} | dict([baselines])
            assert says in page.evaluate(verdict, score | {"baselines": others})


def test_rows_of_many_numbers_are_drawn(browser, site):
    """Nobody reads 64 columns of a sound; they are there for those who want to change them."""
    with opened(browser, site, "#/runs/notes") as page:
        drawn = page.locator("section[aria-label=Input] canvas")
        drawn.wait_for()
        area = page.get_by_label("Type or paste")
        rows = area.input_value().split("\n")
        assert (
            drawn.evaluate("one => [one.width, one.height]") == [len(rows), len(rows[0].split(","))]
            and not area.is_visible()
        )
        page.get_by_text("The numbers, to change them").click()
        area.fill("\n".join(rows[:5]))
        page.wait_for_function("() => document.querySelector('section[aria-label=Input] canvas').width === 5")


def test_of_a_text_the_next_token_is_explained(browser, site):
    with opened(browser, site, "#/runs/text") as page:
        page.get_by_label("Type or paste").fill("7 green bot")
        told = "() => [document.querySelector('.bars .name')?.innerText, ...document.querySelectorAll('button')]"
        page.wait_for_function(
            f"told => ({told})().slice(1).some(one => one.innerText === `Why “${{({told})()[0]}}”?`)"
        )
        with page.expect_request(lambda one: one.url.endswith("/explain")) as asked:
            page.get_by_role("button", name="Why “").click()
        token = asked.value.post_data_json["answer"]
        page.get_by_text(f"Blue spoke for “{token}” as what comes next").first.wait_for()
        page.get_by_text("What is faithfulness?").first.click()
        assert page.get_by_role("button", name="Draw that test").count() == 0  # which would be that of the whole text


@pytest.mark.parametrize(
    ("run", "says", "drawn"),
    [("mood", "probability", ".bars .value"), ("walk", "next", ".mark-line path[stroke-dasharray]")],
)
def test_a_pull_shows_what_has_moved(browser, site, run, says, drawn):
    """Of labels how far each has moved, of a forecast both."""
    with opened(browser, site, f"#/runs/{run}/pull") as page:
        give(page, run)
        place = page.locator("#place")
        place.wait_for()
        names = place.locator("option").all_inner_texts()
        place.select_option(label=next(one for one in names if one.startswith("hidden state")))
        page.get_by_text("multiplied by").wait_for()
        page.locator("#value").fill("0")
        now = page.locator(".answer strong")
        now.wait_for()
        assert says in now.inner_text()
        page.locator(drawn, has_text="was" if run == "mood" else None).first.wait_for(state="attached")


def test_of_tags_those_that_a_pull_has_moved_are_told(browser, site):
    words = ["good", "film", "a"]
    before, after = ([{"words": words, "tags": tags}] for tags in (["A", "B", "C"], ["A", "D", "C"]))
    with opened(browser, site) as page:
        told = (
            "async ([before, after]) => { const {moved} = await import('/static/answers.js');"
            " return [moved(before, after)].flat().map(one => one.textContent ?? one).join(''); }"
        )
        assert page.evaluate(told, [before, after]) == "film: B → D (1 of 3 tags)"
        assert page.evaluate(told, [before, before]) == "the same tags, a little more or less sure"
