"""What CONTRIBUTING.md says is enough to add something: done from here, touching what the page names and nothing else.

A cell, a field and a chart have files of their own: test_own_kind.py, test_own_field.py, look/test_own_chart.py.
"""

import json
import math
import sys
from pathlib import Path
from typing import Annotated

import pytest
import torch
import typer
import typer.testing
from fastapi import APIRouter, Request
from starlette.testclient import TestClient
from torch import nn
from torch.nn import functional as F

from seqloom import Recipe, load, train
from seqloom.architectures.base import ATTENTIONS
from seqloom.architectures.pooling import POOLS
from seqloom.cli import main as command_line
from seqloom.cli.export import export
from seqloom.config.model import ClassifyModel
from seqloom.config.optimizers import OPTIMIZERS
from seqloom.config.task_data import ClassifyData
from seqloom.config.tasks import USES, Use
from seqloom.config.train import ShuffledTrain
from seqloom.data import readers
from seqloom.data.formats import tables
from seqloom.data.formats.lines import Fault
from seqloom.data.schema import Schema, Side
from seqloom.errors import DataError, RecipeError, RunError
from seqloom.exchange.onnx.check import check_model
from seqloom.exchange.onnx.folder import save
from seqloom.exchange.onnx.model import write_model
from seqloom.fields import Number, source_side
from seqloom.layers.attention import Attention
from seqloom.layers.base import first_pool
from seqloom.layers.heads import Head, Readout, select_valid, sum_and_count
from seqloom.metrics.numbers import mae
from seqloom.metrics.score import ratio, score_sums
from seqloom.runs.export import FORMATS
from seqloom.schemas import JsonShape
from seqloom.serve import app as server
from seqloom.serve.wire import engine_of
from seqloom.tasks import TASKS
from seqloom.tasks.classify import TARGETS, parse_all
from seqloom.tasks.labeling import SequenceLabeling
from seqloom.tasks.task import Declaration

SMALL = ("model.kind=gru", "model.size=8", "train.steps=4", "train.validate_every=2")
LETTERS = [(letter * length, letter) for letter in "aeb" for length in (1, 2, 3, 4)] * 2
COUNTS = [(text, str(len(text))) for text, _ in LETTERS]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A classifier of letters, hardly trained."""
    folder = tmp_path_factory.mktemp("runs") / "letters"
    list(train(Recipe.of({"task": "classify"}).override(*SMALL), folder, examples=LETTERS))
    return folder


def read_arrows(files, schema, skipped):
    """A format of one's own: `source -> target`, a line an example."""
    for number, line in enumerate(Path(files[0]).read_text().splitlines(), 1):
        source, arrow, target = line.partition(" -> ")
        if arrow:
            yield (source, target), files[0], number
        else:
            yield Fault("no arrow", "no arrow stands between source and target", files[0], number)


@pytest.fixture
def arrows(monkeypatch, tmp_path):
    monkeypatch.setitem(tables.ENDINGS, ".arrows", "arrows")
    monkeypatch.setitem(readers.READERS, "arrows", read_arrows)
    path = tmp_path / "pairs.arrows"
    path.write_text("".join(f"{word} -> {word[::-1]}\n" for word in ("abc", "bca", "cab", "aab") for _ in "12345"))
    return path


def test_a_file_format_is_a_reader_and_a_line_for_it_and_its_ending(arrows, tmp_path):
    list(train(Recipe.read("seq2seq", f"data.train={arrows}", *SMALL), tmp_path / "run"))
    assert load(tmp_path / "run").task.target.symbols[-3:] == ("a", "b", "c")


def test_its_bad_rows_are_named_with_file_and_line_or_counted(arrows, tmp_path):
    arrows.write_text(arrows.read_text() + "abc bca\n")
    recipe = Recipe.read("seq2seq", f"data.train={arrows}", *SMALL)
    with pytest.raises(DataError, match="pairs.arrows, line 21: no arrow"):
        list(train(recipe, tmp_path / "run"))
    records = list(train(recipe.override("data.on_bad_row=skip"), tmp_path / "run"))
    assert any("no arrow" in record.text for record in records if record.kind == "note")


def vowels_right(predictions, targets, /, *, intervals=True):
    """A metric of one's own: whether a vowel was called one."""
    right = [[(p in "aeiou") == (t in "aeiou"), 1] for p, t in zip(predictions, targets, strict=True)]
    return score_sums(right, ratio, "higher", "share; 1 is all", intervals=intervals)


def test_a_metric_is_a_function_and_a_line_in_the_task(monkeypatch, tmp_path):
    monkeypatch.setitem(TARGETS["label"].metrics, "vowels", vowels_right)
    examples = [(letter * 3, letter) for letter in "aeioubcd" for _ in range(6)]
    recipe = Recipe.read("classify", *SMALL)
    *_, end = train(recipe, tmp_path / "run", examples=examples)
    found = end.final["scores"]["vowels"]
    assert 0 <= found["value"] <= 1 and {"most frequent", "chance"} <= found["baselines"].keys()


# --- networks --------------------------------------------------------------------------------------------------------


class CosineAttention(Attention):
    """A score of one's own: the cosine of the angle between the query and the key."""

    def scores(self, query, keys):
        return F.normalize(query, dim=-1) @ F.normalize(keys, dim=-1).mT


def test_an_attention_is_a_class_and_a_line(monkeypatch, tmp_path):
    with pytest.raises(RecipeError, match='model.attention must be one of "none", "dot", .*, not "cosine"'):
        Recipe.read("seq2seq", "model.attention=cosine")
    monkeypatch.setitem(ATTENTIONS, "cosine", CosineAttention)
    recipe = Recipe.of({"task": "seq2seq"}).override(*SMALL, "model.attention=cosine", "model.hard_attention=true")
    assert ', "cosine".' in recipe.to_toml(comments=True).replace("\n# ", " ")
    assert '"cosine"' in json.dumps(Recipe.schema())
    list(train(recipe, tmp_path / "run", examples=[(text, text[::-1]) for text in ("abc", "bca", "cab") * 8]))
    run = load(tmp_path / "run")
    [attention] = [part for part in run.model.modules() if isinstance(part, Attention)]
    assert isinstance(attention, CosineAttention) and attention.hard
    assert len(run.predict("abc", beam=2)) == 2
    weights = run.look("abc", answer="cba").measure("attention").weights  # hard: all of it lies on one element
    torch.testing.assert_close(torch.as_tensor(weights).amax(-1), torch.ones(weights.shape[:-1]))


def test_a_pooling_is_a_function_and_a_line(monkeypatch, tmp_path):
    monkeypatch.setitem(POOLS, "first", lambda of: first_pool)
    recipe = Recipe.of({"task": "classify"}).override(*SMALL, "model.bidirectional=false", "model.pool=first")
    list(train(recipe, tmp_path / "run", examples=LETTERS))
    run = load(tmp_path / "run")
    one, two = (run.predict(text, beam=3)[0].score for text in ("a", "abbb"))  # read forwards: the first is the same
    assert one == pytest.approx(two, abs=1e-6)
    with pytest.raises(RecipeError, match="^language has no setting model.pool; classify and forecast have"):
        Recipe.read("language", "model.pool=first")


class Laplace(Head):
    """A head of one's own: a number with a spread, by absolute error."""

    def __init__(self, inputs):
        super().__init__()
        self.project = nn.Linear(inputs, 2)

    def forward(self, features):
        middle, spread = self.project(features).chunk(2, -1)
        return middle, F.softplus(spread) + 1e-4

    def loss(self, features, target, mask=None):
        features, target = select_valid(features, target, mask)
        return sum_and_count(-torch.distributions.Laplace(*self(features)).log_prob(target).sum(-1))

    def sample(self, expected, temperature=1.0, mask=None):
        return expected[0]

    def readout(self):
        return Readout("normal", self.project.weight, self.project.bias, (1,))


class RobustNumber(Number):
    kind = "robust number"

    def head(self, features, recipe, weights=()):
        return Laplace(features)


def test_a_head_is_a_class_and_the_field_that_answers_with_it(tmp_path):
    settings = ("data.target_type=number", "train.steps=60", "train.learning_rate=0.05", "train.validate_every=30")
    recipe = Recipe.of({"task": "classify"}).override(*SMALL, *settings)
    fields, parts = {"target": RobustNumber}, dict.fromkeys(("train", "validation", "test"), COUNTS)
    *_, end = train(recipe, tmp_path / "run", examples=parts, fields=fields)
    error = end.final["scores"]["absolute error"]
    assert error["value"] < error["baselines"]["mean"]
    run = load(tmp_path / "run", fields=fields)
    [long], [short] = (run.predict(text, beam=1) for text in ("aaaa", "a"))
    assert long.value > short.value and long.spread > 0
    assert all(check.gap < 1e-5 for check in check_model(run.model, write_model(run.model)))  # by its readout
    with pytest.raises(RunError, match="no code is known for robust number"):
        save(run, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


# --- training and tasks ----------------------------------------------------------------------------------------------


class SignDescent(torch.optim.Optimizer):
    """An optimizer of one's own: a step in the direction of the averaged gradient's sign."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    mean = self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                    mean.lerp_(parameter.grad, 0.1)
                    parameter.sub_(mean.sign(), alpha=group["lr"])


def test_an_optimizer_is_a_function_and_a_line_and_its_memory_is_kept(monkeypatch, tmp_path):
    monkeypatch.setitem(OPTIMIZERS, "sign", lambda groups, settings: SignDescent(groups, settings.learning_rate))
    settings = ("train.optimizer=sign", "train.learning_rate=0.01", "train.checkpoint_every=1")
    recipe = Recipe.of({"task": "classify"}).override(*SMALL, *settings)
    *_, end = train(recipe, tmp_path / "whole", examples=LETTERS)
    assert math.isfinite(end.loss)
    records = (record for record in train(recipe, tmp_path / "cut", examples=LETTERS) if record.kind != "note")
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", examples=LETTERS, resume=True))
    whole, cut = (tmp_path / name / "model.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()


class MeanLength(JsonShape):
    mean: float


def declare_counting(recipe):
    """A task of one's own: how long a text is."""
    data = recipe.data
    return Declaration(
        schema=Schema("count", data, {"source": source_side(data), "target": Side((data.target,), Number)}),
        shape=SequenceLabeling,
        facts=MeanLength,
        learn=lambda task, prepared: MeanLength(mean=task.target.mean),
        baselines=lambda task, inputs: {"mean": [str(task.facts.mean)] * len(inputs)},
        metrics=lambda task: {"error": parse_all(float, mae)},
    )


def test_a_task_is_a_declaration_its_tables_and_a_recipe(monkeypatch, tmp_path):
    monkeypatch.setitem(USES, "count", Use("tell how long a text is", ClassifyData, ClassifyModel, ShuffledTrain))
    monkeypatch.setitem(TASKS, "count", declare_counting)
    (tmp_path / "pairs.csv").write_text("source,target\n" + "".join(f"{text},{length}\n" for text, length in COUNTS))
    (tmp_path / "count.toml").write_text(f'task = "count"\n[data]\ntrain = "{tmp_path}/pairs.csv"\n')
    recipe = Recipe.read(tmp_path / "count.toml", *SMALL)
    assert "tell how long a text is" in recipe.to_toml(comments=True)
    with pytest.raises(RecipeError, match="count has no setting train.class_weights; classify and tag have"):
        recipe.override("train.class_weights=true")
    *_, end = train(recipe, tmp_path / "run")
    assert set(end.final["scores"]["error"]["baselines"]) == {"mean"}
    [one] = load(tmp_path / "run").predict("aaa", beam=1)
    assert float(one.output) == pytest.approx(one.value, rel=1e-3)


# --- for people and programs -----------------------------------------------------------------------------------------


def longest(
    run: Annotated[Path, typer.Argument(help="A run folder.")], words: Annotated[list[str], typer.Argument()]
) -> None:
    """A command of one's own: the word whose answer is the least certain."""
    if len(words) < 2:
        raise RecipeError(f"{len(words)} word cannot be compared; at least 2 are needed")
    print(min(words, key=lambda word: load(run).predict(word, beam=1)[0].score))


def test_a_command_is_a_function_and_its_name_in_the_table(run, monkeypatch, capsys):
    monkeypatch.setitem(command_line.COMMANDS, "longest", __name__)

    def typed(*words):
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        with pytest.raises(SystemExit) as done:
            command_line.main()
        return done.value.code, capsys.readouterr()

    code, said = typed("--help")
    assert code == 0 and "longest" in said.out and "export" in said.out
    code, said = typed("longest", run, "aaa", "b")
    assert code == 0 and said.out.strip() in ("aaa", "b")
    code, said = typed("longest", run, "a")
    assert code == 2 and said.err == "error: 1 word cannot be compared; at least 2 are needed\n"


router = APIRouter(tags=["own"])


@router.get("/runs/{run}/labels")
async def list_labels(request: Request, run: str):
    """A route of one's own: the labels of a run."""
    engine = engine_of(request)
    engine.runs.check(run)
    return await engine.call(run, lambda model: {"labels": model.run.task.target.names})


def test_a_route_is_a_function_and_its_router_in_the_list(run, monkeypatch):
    monkeypatch.setattr(server, "ROUTERS", (*server.ROUTERS, router))
    with TestClient(server.create_app(run.parent), base_url="http://localhost") as client:
        assert sorted(client.get("/runs/letters/labels").json()["labels"]) == ["a", "b", "e"]
        missing = client.get("/runs/nothing/labels")
        assert missing.status_code == 404 and "nothing" in missing.json()["error"]
        assert "A route of one's own" in client.get("/openapi.json").text
        assert "/runs/{run}/labels" in client.get("/docs").text
        assert client.get("/runs/letters/labels", headers={"host": "evil.example"}).status_code >= 400  # as any route


def write_shapes(run, folder):
    """An export of one's own: the shape of every tensor."""
    folder.mkdir()
    lines = [f"{name}\t{tuple(tensor.shape)}\n" for name, tensor in run.model.state_dict().items()]
    (folder / "shapes.tsv").write_text("".join(lines))
    return {"folder": str(folder), "format": "shapes", "files": {"shapes.tsv": len("".join(lines))}}


def test_an_export_is_a_function_and_a_line(run, monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, "shapes", write_shapes)
    typed = ["export", str(run), "--to", "shapes", "--into", str(tmp_path / "out"), "--json"]
    done = typer.testing.CliRunner().invoke(command_line.build_app(), typed)
    assert done.exit_code == 0 and json.loads(done.stdout)["files"].keys() == {"shapes.tsv"}
    names = [line.split("\t")[0] for line in (tmp_path / "out/shapes.tsv").read_text().splitlines()]
    assert names == list(load(run).model.state_dict())
    with pytest.raises(RecipeError, match="a run is exported to onnx, torch, huggingface, shapes, not to 'gguf'"):
        export(run, "gguf", tmp_path / "none")
    with pytest.raises(RunError):
        export(tmp_path / "missing", "onnx", tmp_path / "none")
