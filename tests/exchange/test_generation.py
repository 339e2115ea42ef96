"""GPT-2 and Marian write through our search what transformers' `generate` writes."""

import pytest
import torch

from seqloom.errors import DataError
from seqloom.exchange import huggingface

from .theirs import PADDING, draw_ids, write

STEPS, END, PAD = 8, 7, 44
each_kind = pytest.mark.parametrize("kind", ["gpt2", "marian"])


def ask_theirs(model, kind, ids, mask, beam_size, end):
    """Their continuations of each row, best first, up to the end, and the scores they are ranked by."""
    found = model.generate(
        input_ids=ids,
        attention_mask=mask.long(),
        max_new_tokens=STEPS,
        num_beams=beam_size,
        num_return_sequences=beam_size,
        do_sample=False,
        eos_token_id=end,
        pad_token_id=PAD,
        return_dict_in_generate=True,
        output_scores=True,
    )
    written = found.sequences[:, ids.shape[1] if kind == "gpt2" else 1 :].tolist()
    rows = [row[: row.index(end)] if end in row else row for row in written]
    scores = found.sequences_scores.tolist() if beam_size > 1 else [0.0] * len(rows)
    return [
        list(zip(rows[at : at + beam_size], scores[at : at + beam_size], strict=True))
        for at in range(0, len(rows), beam_size)
    ]


def prepare(kind, folder, seed, end):
    theirs = write(kind, folder, seed, eos_token_id=end)
    theirs.generation_config.eos_token_id = end
    torch.manual_seed(seed)
    # On the right theirs would go on after the padding; a source may be padded anywhere, but theirs counts places.
    mask = PADDING["left"][:, 3:] if kind == "gpt2" else PADDING["right"]
    return theirs, huggingface.load(folder), draw_ids(*mask.shape), mask


@each_kind
@pytest.mark.parametrize("end", [None, END])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_writing_is_theirs(kind, end, seed, tmp_path):
    theirs, ours, ids, mask = prepare(kind, tmp_path, seed, end)
    ours.settings = ours.settings.model_copy(update={"end": end})
    expected = [row[0][0] for row in ask_theirs(theirs, kind, ids, mask, 1, end)]
    assert [best.tokens for [best] in ours.generate(ids, mask, steps=STEPS)] == expected


@each_kind
@pytest.mark.parametrize("beam_size", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_is_theirs_with_all_its_scores(kind, beam_size, seed, tmp_path):
    """Where nothing ends: what becomes of finished hypotheses is a matter of taste, and theirs is another."""
    theirs, ours, ids, mask = prepare(kind, tmp_path, seed, None)
    ours.settings = ours.settings.model_copy(update={"end": None})
    expected = ask_theirs(theirs, kind, ids, mask, beam_size, None)
    for found, row in zip(ours.generate(ids, mask, steps=STEPS, beam_size=beam_size), expected, strict=True):
        assert [one.tokens for one in found] == [tokens for tokens, _ in row]
        assert [one.score for one in found] == pytest.approx([score for _, score in row], abs=1e-4)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_a_beam_that_ends_is_theirs(kind, seed, tmp_path):
    theirs, ours, ids, mask = prepare(kind, tmp_path, seed, END)
    expected = [row[0] for row in ask_theirs(theirs, kind, ids, mask, 2, END)]
    for found, (tokens, score) in zip(ours.generate(ids, mask, steps=STEPS, beam_size=2), expected, strict=True):
        assert found[0].tokens == tokens
        assert found[0].score == pytest.approx(score, abs=1e-4)


def test_what_generation_config_bans_is_not_written(tmp_path):
    theirs = write("marian", tmp_path)
    ids = draw_ids(2, 5)
    free = huggingface.load(tmp_path).generate(ids, steps=4)
    banned = [[one] for one in {token for [best] in free for token in best.tokens}]
    theirs.generation_config.bad_words_ids = banned
    theirs.generation_config.save_pretrained(tmp_path)
    for [best] in huggingface.load(tmp_path).generate(ids, steps=4):
        assert best.tokens and not [one for one in best.tokens if [one] in banned]


def test_more_than_the_positions_is_refused_before_it_is_written(tmp_path):
    write("gpt2", tmp_path)
    model = huggingface.load(tmp_path)
    assert len(model.generate(draw_ids(1, 36), steps=5)[0][0].logs) <= 5
    with pytest.raises(DataError, match="6 tokens more are beyond the 40 positions"):
        model.generate(draw_ids(1, 36), steps=6)
