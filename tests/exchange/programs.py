"""Asking the programs that lie beside exported models, in processes that cannot import this package."""

import json
import subprocess
import sys

import numpy as np

# Answers of programs in a process that cannot import torch or seqloom.
ASK = """
import json, runpy, sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in json.loads(sys.argv[1]):
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Without())
answers = []
for program, inputs in json.load(sys.stdin):
    predict = runpy.run_path(program)["predict"]
    answers.append([predict(*given) for given in inputs])
print(json.dumps(answers))
"""


def ask(programs, without=("torch", "seqloom")):
    """Answers to [(program, [arguments, …]), …]."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(without)],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def jsonable(given):
    """Arrays as lists; JSON has no word for a gap that all readers know, but Python's has."""
    return given.tolist() if isinstance(given, np.ndarray) else given


def expected(run, given):
    [best, *_] = run.predict(given, beam=1)
    return {name: values for name, values in best.values.items()} if hasattr(best, "values") else best.output


def same(found, true):
    if not isinstance(found, dict):
        return found == true
    points = {name: levels.get("0.5", levels.get("mean")) for name, levels in found.items()}
    return points.keys() == true.keys() and all(np.allclose(points[n], true[n], 1e-4, 1e-4) for n in true)
