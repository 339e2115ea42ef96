"""`seqloom doctor --machine`: what this machine has."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from seqloom.runs import machine


def ask(*arguments, **environment):
    command = [sys.executable, "-m", "seqloom", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def test_the_machine_is_described_for_programs_and_for_people():
    facts = json.loads(ask("--machine", "--json", OMP_NUM_THREADS="1").stdout)
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["threads"] == {"torch": 1, "OMP_NUM_THREADS": "1"}
    assert facts["kernels"]["native"] == (shutil.which("cc") is not None)
    assert 0 < facts["memory"]["available"] <= facts["memory"]["total"]
    assert 0 < facts["disk"]["here"] <= shutil.disk_usage(".").total


def test_it_says_why_kernels_are_plain():
    answer = ask("--machine", SEQLOOM_NATIVE="0")
    assert answer.returncode == 0 and "kernels    plain: SEQLOOM_NATIVE=0 turns native kernels off" in answer.stdout
    answer = ask("--machine", CC="no-such-compiler")
    assert "no C compiler 'no-such-compiler' was found" in answer.stdout


def test_a_run_or_the_machine_but_not_both_and_not_neither(tmp_path):
    for arguments in ([], [str(tmp_path), "--machine"]):
        answer = ask(*arguments)
        assert answer.returncode == 2 and "either a run folder or, with --machine" in answer.stderr


@pytest.mark.parametrize(("text", "expected"), [("max", None), ("1073741824", 1 << 30), ("9223372036854771712", None)])
def test_the_limit_of_memory_is_read(text, expected, tmp_path):
    (tmp_path / "memory.max").write_text(text)
    assert machine.read_memory_limit(tmp_path) == expected
