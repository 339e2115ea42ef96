"""Lesson 10: causal self-attention in one head, with its cache."""

import torch
from torch import nn

from seqloom.layers import Layer


class MaskedAttention(Layer):
    """The state is the keys and values of all that was read, and which of them are elements and not padding."""

    def __init__(self, size):
        super().__init__()
        self.project = nn.Linear(size, 3 * size)

    def initial_state(self, batch, memory=None):
        nothing = self.project.weight.new_zeros(batch, 0, self.project.in_features)
        return nothing, nothing, nothing.new_zeros(batch, 0, dtype=torch.bool)

    def forward(self, x, state, mask=None):
        mask = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        query, key, value = self.project(x.masked_fill(~mask[..., None], 0)).chunk(3, -1)
        keys, values, there = (torch.cat(pair, 1) for pair in zip(state, (key, value, mask), strict=True))
        before, new = keys.shape[1] - x.shape[1], x.shape[1]
        seen = torch.ones(new, keys.shape[1], dtype=torch.bool, device=x.device).tril(before) & there[:, None]
        scores = (query @ keys.mT / query.shape[-1] ** 0.5).masked_fill(~seen, torch.finfo(x.dtype).min)
        return scores.softmax(-1) @ values * mask[..., None], (keys, values, there)
