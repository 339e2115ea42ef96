"""Lesson 9: every element looks at a memory by dot products."""

import torch
from torch import nn

from seqloom.layers import Layer
from seqloom.layers.state import SharedLeaf


class Looking(Layer):
    """y_t = tanh(C [x_t; c_t]) with c_t = Σ_s softmax_s((Q x_t)ᵀ v_s / √d) v_s over the values v of the memory."""

    def __init__(self, size, memory):
        super().__init__()
        self.query, self.join = nn.Linear(size, memory, bias=False), nn.Linear(size + memory, size)

    def initial_state(self, batch, memory=None):
        return SharedLeaf((memory.values, memory.mask))  # one copy for all beams

    def look(self, x, values, mask):
        scores = self.query(x) @ values.mT / values.shape[-1] ** 0.5
        return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1) @ values

    def forward(self, x, state, mask=None):
        x = x if mask is None else x.masked_fill(~mask[..., None], 0)
        y = torch.tanh(self.join(torch.cat([x, state.ask(self.look, x)], -1)))
        return y if mask is None else y * mask[..., None], state
