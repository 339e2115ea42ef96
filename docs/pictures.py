"""The pictures of the README and of these pages, made anew from the built-in samples: make pictures.

Trains small runs and both studies into runs/pictures (ten minutes on two cores; what is there already is used), looks
into them and writes docs/pictures/*.svg and *.png: what `seqloom look RUN INPUT --view NAME --out FILE` writes, and
`seqloom study NAME`. Every view is drawn once for the gallery, docs/pictures/views, from the first run that it fits.
The page is photographed in Debian's Chromium.
"""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Error, sync_playwright

from seqloom import Recipe, load, train
from seqloom.look import Look
from seqloom.look.charts.base import save
from seqloom.look.views import VIEWS
from seqloom.runs.folder import SCORES
from seqloom.runs.run import Run
from seqloom.runs.studies import show_study, train_study

HERE = Path(__file__).parent
RUNS = HERE.parent / "runs" / "pictures"
LARGEST = 150_000  # bytes of a file that stands in a page

# By run: its recipe with what is changed, the input that is looked at, and its pictures.
MADE: dict[str, tuple[tuple[str, ...], str | None, tuple[str, ...]]] = {
    "dates": (
        (
            "seq2seq",
            "model.kind=lstm",
            "model.size=64",
            "train.steps=1400",
            "train.learning_rate=4e-3",
            "train.watch_every=40",
        ),
        "3 mai 2024",
        ("attention", "model", "gates", "flow", "spectrum-history"),
    ),
    "dates-transformer": (
        ("seq2seq", "model.kind=transformer", "model.size=64", "model.depth=2", "model.heads=4", "train.steps=500"),
        "3 mai 2024",
        ("heads",),
    ),
    "names": (
        ("classify", "model.size=64", "train.steps=300"),
        "Vereinigtes Königreich",
        ("attribution",),
    ),
    "shapes": (("caption",), None, ("attention",)),
    "manual": (
        ("language", "model.size=96", "train.steps=300"),
        "The statement is executed",
        ("next",),
    ),
    "gaps": (("gaps",), None, ()),
}
DRAWN = {("shapes", "attention"): "caption"}  # where the name of the view says too little
STUDIES = {
    "vanishing": {"accuracy": "vanishing-accuracy", "gradients": "vanishing-gradients"},
    "taming": {"curves": "taming"},
}
SHORTER = {"taming": ("train.steps=60", "train.validate_every=60")}  # than the study of the page's table
ENDINGS = {"caption": ".png", "heads": ".png"}  # a picture of a picture, and very many squares


def train_or_load(name: str, changes: tuple[str, ...]) -> Run:
    folder = RUNS / name
    if not (folder / SCORES).exists():
        recipe = Recipe.read(*changes)
        for record in train(recipe, folder, resume=folder.exists()):
            if record.scores:
                print(name, record.step, record.scores)
    return load(folder)


def draw_gallery(looks: list[Look]) -> None:
    """Every view of the first look that has it; as pixels where a drawing would be too large."""
    for view in VIEWS:
        look = next((one for one in looks if view in one.views), None)
        if look is None:
            print(f"{view}: fits none of the runs")
            continue
        path = save(look.views[view](), HERE / "pictures" / "views" / f"{view}.svg")
        if path.stat().st_size > LARGEST:
            path.unlink()
            path = save(look.views[view](), path.with_suffix(".png"))
        report_size(path)


def main() -> None:
    looks = []
    for name, (changes, raw, pictures) in MADE.items():
        look = train_or_load(name, changes).look(raw)
        looks.append(look)
        views = look.views
        for view in pictures:
            drawn = DRAWN.get((name, view), view)
            report_size(save(views[view](), HERE / "pictures" / f"{drawn}{ENDINGS.get(drawn, '.svg')}"))
    draw_gallery(looks)
    for name, pictures in STUDIES.items():
        for record in train_study(name, RUNS / f"study-{name}", *SHORTER.get(name, ())):
            print(record)
        show_study(name, RUNS / f"study-{name}")
        for chart, drawn in pictures.items():
            report_size(Path(shutil.copy(RUNS / f"study-{name}" / f"{chart}.svg", HERE / "pictures" / f"{drawn}.svg")))
    report_size(photograph(HERE / "pictures" / "page.png"))


def photograph(path: Path) -> Path:
    """The page of the runs above: a date, its answer, and what one digit of it attended to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    serve = [sys.executable, "-m", "seqloom", "serve", str(RUNS), "--port", url.rpartition(":")[2]]
    server = subprocess.Popen(serve)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1040, "height": 822})
            for _ in range(100):
                try:
                    page.goto(f"{url}/#/runs/dates")
                    break
                except Error:
                    time.sleep(0.3)
            page.get_by_label("Type or paste").fill("3 mai 2024")
            page.get_by_text("Answered:").wait_for()
            page.wait_for_timeout(2000)
            page.locator(".chips").nth(2).locator(".chip").nth(6).hover()
            page.screenshot(path=path)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return path


def report_size(path: Path) -> None:
    """How large it is; a photograph's worth of colors is more than a chart needs."""
    if path.suffix == ".png":
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes" + (" TOO LARGE" if size > LARGEST else ""))


if __name__ == "__main__":
    main()
