"""A head that spans the sequence: tokens in order, without saying where (Graves et al., 2006)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .heads import Head, Loss
from .padding import full_mask, take_steps, to_front, zero_padding
from .state import raise_to_single

BLANK = 0  # what an element says that adds no token; a target is padded with it


class CTC(Head):
    """Connectionist temporal classification: every frame says a token or a blank, and an element of the sequence is one
    frame or several. A sequence of tokens is as probable as all ways to say it together; equal neighbors are one token
    unless a blank is between them."""

    outcome = "alignment"

    def __init__(self, inputs: int, tokens: int, frames: int = 1) -> None:
        super().__init__()
        self.project, self.frames = nn.Linear(inputs, frames * tokens), frames

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.project(features)
        return logits.unflatten(-1, (self.frames, -1)).flatten(-3, -2)  # (B, T · frames, tokens)

    def mask_frames(self, mask: Tensor) -> Tensor:
        """Which frames are those of an element (B, T · frames), from which elements are there (B, T)."""
        return mask.repeat_interleave(self.frames, 1)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        """The target (B, L) is tokens, padded at the end; a row with fewer frames than `count_needed` has no finite
        loss."""
        mask = full_mask(features) if mask is None else mask
        logs = self.log_probability(self(zero_padding(features, mask)), target, self.mask_frames(mask))
        return -logs.sum(), (target != BLANK).sum()

    def log_probability(self, expected: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        order, _ = to_front(mask)
        logs = raise_to_single(take_steps(zero_padding(expected, mask), order)).log_softmax(-1).transpose(0, 1)
        lengths = mask.sum(1), (target != BLANK).sum(1)
        return -F.ctc_loss(logs, target, *lengths, blank=BLANK, reduction="none")

    def sample(self, expected: Tensor, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        """What each frame says."""
        if temperature == 0:
            return expected.argmax(-1)
        return torch.distributions.Categorical(logits=expected / temperature).sample()


def count_needed(target: Tensor) -> Tensor:
    """The fewest frames that can say each row of tokens (B, L): one each, and a blank between equal neighbors."""
    repeated = (target[:, 1:] == target[:, :-1]) & (target[:, 1:] != BLANK)
    return (target != BLANK).sum(1) + repeated.sum(1)
