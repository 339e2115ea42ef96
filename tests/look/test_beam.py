"""The picture of a beam search shows what the tree holds, and the best answer in it."""

import json

import pytest
import torch

from seqloom.look.charts.base import render
from seqloom.look.charts.beam import RANKS, STEPS, beam_chart, place_nodes
from seqloom.search import BeamOptions, Recorder, beam

SYMBOLS = ["<pad>", "<unk>", "<s>", "</s>", " ", *"abcdefgh"]


def searched(width=3, steps=6, groups=1):
    torch.manual_seed(1)
    table, recorder = 2 * torch.randn(len(SYMBOLS), len(SYMBOLS)), Recorder()
    table[:, :3] = -torch.inf
    found = beam(
        lambda last, state: (table[last], state),
        torch.tensor([[2]]),
        None,
        BeamOptions(beam_size=width, steps=steps, end=3, groups=groups),
        recorder=recorder,
    )
    return recorder.trees[0], found[0]


@pytest.mark.parametrize("groups", [1, 3])
def test_every_hypothesis_stands_after_the_one_it_goes_on_from(groups):
    tree, _ = searched(groups=groups)
    rows, _ = place_nodes(tree, SYMBOLS)
    assert len(rows) == len(tree.nodes) > 15 and {"kept", "finished"} <= {row["fate"] for row in rows}
    assert groups > 1 or any(row["fate"] == "pruned" for row in rows)
    spots = {(row["step"], row["place"]): row for row in rows}
    assert len(spots) == len(rows)  # no two in one spot
    for row in rows:
        if row["step"]:
            before = spots[row["from_step"], row["from_place"]]
            *begun, last = row["text"].split(" ")
            assert before["text"] == " ".join(begun) and last == row["token"] and before["fate"] == "kept"
        assert row["fate"] != "pruned" or row["why"]


def test_the_best_answer_is_marked_to_its_end():
    tree, [best, *_] = searched()
    rows, _ = place_nodes(tree, SYMBOLS)
    marked = [row["token"] for row in rows if row["best"] and row["step"]]
    expected = ["␣" if SYMBOLS[token] == " " else SYMBOLS[token] for token in best.tokens]
    assert marked == expected + ["</s>"] * (best.finish == "end")


def test_the_slider_goes_through_all_steps_and_tokens_are_said():
    tree, _ = searched()
    spec = json.loads(render(beam_chart(tree, SYMBOLS), ".json"))
    [slider] = spec["params"]
    assert slider["bind"]["max"] == slider["value"] == tree.nodes[-1].step == 6
    [rows] = spec["datasets"].values() if "datasets" in spec else [spec["data"]["values"]]
    rows = json.loads(rows) if isinstance(rows, str) else rows
    assert any(row["label"].startswith("␣") for row in rows) and all("%" in row["label"] for row in rows if row["step"])
    assert render(beam_chart(tree), ".png").startswith(b"\x89PNG")


def test_a_wide_and_long_search_stays_a_picture():
    tree, _ = searched(width=20, steps=STEPS + 20)
    rows, height = place_nodes(tree, SYMBOLS)
    assert max(row["step"] for row in rows) <= STEPS
    assert height <= max(RANKS, 20) and all(row["from_place"] < height for row in rows)
