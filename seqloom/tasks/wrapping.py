"""What stands around a trained net so that something else has a say in what comes next.

The net stays as it is. Around it is a `Generator` like any other: its embedding hands the token itself on, its decoder
carries beside the net's state what the other one has to remember, and its head mixes.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.base import Entries, Memory, WrappedLayer
from ..layers.fast.steps import Step, prepare_step
from ..layers.heads import Head, Loss, WrappedHead, select_valid, sum_and_count
from ..layers.state import State
from ..models import Generator


class TokenBeside(nn.Module):
    """An embedding with one feature more: the token itself."""

    def __init__(self, embed: nn.Module) -> None:
        super().__init__()
        self.embed = embed

    def forward(self, y: Tensor) -> Tensor:
        vectors: Tensor = self.embed(y)
        return torch.cat([vectors, y[..., None].to(vectors.dtype)], -1)


class DecoderBeside(WrappedLayer):
    """A decoder whose outputs have more features behind them, which another model makes of the tokens that are read."""

    @abstractmethod
    def begin(self, batch: int) -> tuple[Tensor, ...]:
        """What the other model remembers before the first token."""

    @abstractmethod
    def look(self, y: Tensor, tokens: Tensor, mask: Tensor | None, *own: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The features (B, T, E) beside the net's y, and what the other model remembers then in place of `own`."""

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return super().initial_state(batch, memory), *self.begin(batch)

    def final_states(self, state: State) -> tuple[Entries, ...]:
        return super().final_states(state[0])

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        inner, *own = state
        y, inner = self.layer(x[..., :-1], inner, mask)
        extra, after = self.look(y, x[..., -1].long(), mask, *own)
        return torch.cat([y, extra.to(y)], -1), (inner, *after)

    def fast_step(self) -> Step:
        move = prepare_step(self.layer)

        def step(x: Tensor, state: State) -> tuple[Tensor, State]:
            y, inner = move(x[:, :-1], state[0])
            extra, after = self.look(y[:, None], x[:, -1:].long(), None, *state[1:])
            return torch.cat([y, extra[:, 0].to(y)], -1), (inner, *after)

        return step


class MixingHead(WrappedHead):
    """A head that mixes into what another one expects; the last `extra` features are for the mixing alone."""

    def __init__(self, head: Head, extra: int) -> None:
        super().__init__(head)
        self.extra = extra

    @abstractmethod
    def mix(self, logits: Tensor, extra: Tensor) -> Tensor:
        """The log-probabilities of the mixture (…, V)."""

    def split(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """What the net has made of an element, and the rest."""
        return features[..., : -self.extra], features[..., -self.extra :]

    def forward(self, features: Tensor) -> Tensor:
        own, extra = self.split(features)
        return self.mix(self.head(own), extra)

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        logs: Tensor = self(features)
        return -logs.gather(-1, target[..., None]).squeeze(-1)

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        return sum_and_count(self.negative_log_likelihood(*select_valid(features, target, mask)))

    def fast_answer(self) -> Callable[[Tensor], Any]:
        answer = self.head.fast_answer()

        def mix(y: Tensor) -> Tensor:
            own, extra = self.split(y)
            return self.mix(answer(own), extra)

        return mix


class TokenMixingHead(MixingHead):
    """One whose mixture at a token follows from the net's loss there: the others need not be asked."""

    @abstractmethod
    def mix_losses(self, losses: Tensor, extra: Tensor, target: Tensor) -> Tensor:
        """The losses of the mixture (N,) at the targets, by those of the net."""

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        own, extra = self.split(features)
        return self.mix_losses(self.head.negative_log_likelihood(own, target), extra, target)


def wrap_generator(net: Generator, decoder: DecoderBeside, head: MixingHead) -> Generator:
    """The net with another model beside its decoder and in its head; the net stays as it is."""
    wrapped = Generator(TokenBeside(net.embed), decoder, head)
    wrapped.eight_bits = net.eight_bits
    return wrapped.eval()
