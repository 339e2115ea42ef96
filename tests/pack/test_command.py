"""`seqloom pack` from the command line."""

import json

from typer.testing import CliRunner

from seqloom.cli.main import build_app
from seqloom.runs.run import train

from ..recipes import small


def test_a_run_is_packed_and_what_it_costs_is_said(tmp_path):
    list(train(small(tmp_path, "train.steps=4"), tmp_path / "run"))
    done = CliRunner().invoke(
        build_app(), ["pack", str(tmp_path / "run"), "--into", str(tmp_path / "run.html"), "--json"]
    )
    assert not done.exit_code, done.output
    summary = json.loads(done.stdout)
    assert summary["bytes"] == (tmp_path / "run.html").stat().st_size < 5e6
    assert 0 < summary["same_answers"] <= summary["examples"] and summary["largest_difference"] < 0.5
    again = CliRunner().invoke(build_app(), ["pack", str(tmp_path / "run"), "--into", str(tmp_path / "run.html")])
    assert again.exit_code and "is there already" in str(again.output) + str(again.exception)
