"""The report of a run in the real browser, from disk, with the network cut."""

import pytest

from seqloom.config.recipe import Recipe
from seqloom.look.names import format_token
from seqloom.runs.run import load, train

from ..browser import chromium

WORDS = ["good", "bad", "fine", "awful"] * 8
EVIL = "</script><b id=evil>x</b>"
CASES = {
    "writes": ("seq2seq", "transformer", [(text, text[::-1]) for text in WORDS], "good"),
    "labels": ("classify", "lstm", [(text, EVIL if text[0] in "gf" else "sad & <low>") for text in WORDS], EVIL),
}
QUICK = ("model.size=16", "train.steps=8", "train.watch_every=2", "train.batch_tokens=256")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, (task, kind, examples, given) in CASES.items():
        recipe = Recipe.of({"task": task}).override(f"model.kind={kind}", *QUICK)
        list(train(recipe, folder / name, examples=examples))
        load(folder / name).report(folder / f"{name}.html", given, examples=examples)
    return folder


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def opened(browser, page_file, told, **how):
    """The page with the network cut; what the console complains of, and what is asked of a network, is told."""
    context = browser.new_context(**how)
    context.set_offline(True)
    page = context.new_page()
    page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith(("file:", "data:", "blob:")) else told.append(one.url))
    page.goto(page_file.as_uri())
    return page


MARKS = """() => {
  const kinds = ["rect path", "line path", "symbol path", "rule line", "text text", "area path", "image image"];
  const count = name => document.querySelectorAll(kinds.map(kind => `#chart-${name} .mark-${kind}`).join()).length;
  return Object.fromEntries(Object.keys(views).map(name => [name, count(name)]));
}"""


def check_every_chart(page):
    page.evaluate("() => drawAll()")
    marks = page.evaluate(MARKS)
    specs = page.evaluate("() => Object.keys(specs)")
    assert set(marks) == set(specs) and len(marks) > 10
    assert {chart: count for chart, count in marks.items() if count == 0} == {}
    images = page.evaluate("() => [...document.images].map(one => one.complete && one.naturalWidth > 0)")
    assert images and all(images)
    links = page.evaluate("() => [...document.querySelectorAll('nav a')].map(a => !!document.querySelector(a.hash))")
    assert len(links) == 7 and all(links)


def test_a_report_opens_from_disk_without_a_network_and_draws_every_chart(browser, pages):
    """And the labels of the attention chart are the tokens."""
    told: list[str] = []
    file = pages / "writes.html"
    assert file.stat().st_size < 5_000_000
    page = opened(browser, file, told)
    check_every_chart(page)
    assert told == []
    look = load(pages / "writes").look("good")
    labels = page.evaluate(
        "() => [...document.querySelectorAll('#chart-attention .role-axis-label text')].map(one => one.textContent)"
    )
    seen = [format_token(token) for token in (*look.names.source, *look.names.target)]
    assert sorted(labels) == sorted(seen) and "g" in labels
    page.context.close()


def test_what_comes_from_data_stays_text(browser, pages):
    told: list[str] = []
    file = pages / "labels.html"
    assert file.stat().st_size < 5_000_000 and "</script><b" not in file.read_text()
    page = opened(browser, file, told)
    check_every_chart(page)
    assert told == [] and page.query_selector("#evil") is None
    assert EVIL in page.inner_text("#answers") and "sad & <low>" in page.inner_text("#answers")
    page.context.close()


def test_a_report_is_readable_on_a_phone_in_the_light_and_in_the_dark(browser, pages):
    """Wide charts scroll by themselves, not the page; words stand out from the ground."""
    told: list[str] = []
    page = opened(browser, pages / "writes.html", told, color_scheme="light", viewport={"width": 360, "height": 740})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate("() => draw('curves')")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        words = page.evaluate(
            "() => getComputedStyle(document.querySelector('#chart-curves .role-axis-label text')).fill"
        )
        colors = [max(map(int, color.strip("rgba()").split(",")[:3])) for color in (ground, words)]
        dark, light = (colors[0], colors[1]) if scheme == "dark" else (colors[1], colors[0])
        assert dark < 120 and light > 160, (scheme, ground, words)
    assert told == []
    page.context.close()
