"""A model from anywhere: a function is enough."""

import pytest
import torch
from torch import nn

from seqloom.search import BannedTokens, BeamOptions, Sampling, beam, greedy, sample_tokens

close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_an_lstm_of_pytorch_writes_with_its_state_and_without():
    embed, lstm, head = nn.Embedding(9, 8), nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, 9)

    def step(last, state):
        output, state = lstm(embed(last), tuple(part.transpose(0, 1).contiguous() for part in state))
        return head(output), tuple(part.transpose(0, 1) for part in state)  # the batch first, as everywhere here

    def again(last, past):
        """Without a state: everything is read again."""
        past = torch.cat([past, last], 1)
        return head(lstm(embed(past))[0]), past

    last, zeros, nothing = torch.arange(4)[:, None], torch.zeros(4, 2, 16), torch.empty(4, 0).long()
    for way in (
        lambda step, state: greedy(step, last, state, steps=12, end=0),
        lambda step, state: sample_tokens(step, Sampling(1.5, seed=3), last, state, steps=12, end=0),
        lambda step, state: sum(beam(step, last, state, BeamOptions(beam_size=3, steps=12, end=0)), []),
    ):
        cached, uncached = way(step, (zeros, zeros)), way(again, nothing)
        assert [one.tokens for one in cached] == [one.tokens for one in uncached]
        for one, two in zip(cached, uncached, strict=True):
            close(torch.tensor(one.logs), torch.tensor(two.logs))


def test_a_hugging_face_model_with_its_cache():
    import transformers

    shape = transformers.GPT2Config(vocab_size=30, n_positions=40, n_embd=16, n_layer=2, n_head=2)
    model = transformers.GPT2LMHeadModel(shape).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)

    def step(last, state):
        cache = transformers.DynamicCache(state or None)
        found = model(last, past_key_values=cache, use_cache=True)
        return found.logits, tuple((layer.keys, layer.values) for layer in found.past_key_values.layers)

    last = torch.tensor([[3], [4], [5]])
    settings = {"max_new_tokens": 10, "eos_token_id": 0, "pad_token_id": 0, "attention_mask": torch.ones_like(last)}
    theirs = model.generate(last, do_sample=False, bad_words_ids=[[7]], **settings)
    for one, row in zip(greedy(step, last, (), steps=10, end=0, constraints=[BannedTokens([7])]), theirs, strict=True):
        assert [*one.tokens, *[0] * (10 - len(one.tokens))] == row[1:].tolist()[:10] + [0] * (11 - len(row))
    wide = model.generate(last, num_beams=4, do_sample=False, length_penalty=1.0, **{**settings, "eos_token_id": None})
    for [best, *_], row in zip(beam(step, last, (), BeamOptions(beam_size=4, steps=10, end=None)), wide, strict=True):
        assert best.tokens == row[1:].tolist()  # where nothing ends, a beam is a beam
