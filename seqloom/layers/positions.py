"""Where an element stands: waves or learned vectors that are added to it, or a turn of queries and keys."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from .base import Layer, Memory
from .description import EACH, POSITIONS, Description, count_parameters
from .fast import native_decoder, steps
from .padding import full_mask, zero_padding
from .state import State


def count_positions(x: Tensor, before: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Positions (B, T) of the valid elements of x after `before` (B,) others, and how many there are now."""
    count = before[:, None] + (full_mask(x) if mask is None else mask).cumsum(1)
    return count - 1, count[:, -1] if x.shape[1] else before


def frequencies(size: int) -> Tensor:
    """How fast each pair of features turns with the position: 10000^(−2j/d)."""
    return 10000.0 ** (-torch.arange(0, size, 2) / size)


def sinusoids(positions: Tensor, rate: Tensor, size: int) -> Tensor:
    """Sines and cosines of positions (…): (…, size), in turns. An odd size has a sine more."""
    angle = positions[..., None] * rate
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)[..., :size]


class Positions(Layer):
    """Adds to each element where it stands.

    Padding takes no place, so that it changes nothing; with `count_padding` it does, as some other libraries have it.
    """

    count_padding: bool = False
    longest: int | None = None  # how many positions there are; none is any number

    @abstractmethod  # as all that the fast ways rest on: who writes it for the first time changes no equation
    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        """How many elements of each row were read: none."""

    @abstractmethod
    def tabulate(self, length: int) -> tuple[str, Tensor]:
        """What these positions are called, and the vectors of the first of them (length, size)."""

    @abstractmethod
    def table_to(self, furthest: int, x: Tensor) -> Tensor | None:
        """Vectors (…, size) for x (B, size) by position, up to the furthest; none if there are not so many."""

    def describe(self) -> Description:
        return Description("positions", EACH, count_parameters(self), POSITIONS)

    def fast_step(self) -> steps.Step:
        return steps.step_positions(self.table_to, steps.plain_step(self))  # which says why it cannot be

    def fast_read(self, x: Tensor, mask: Tensor) -> tuple[Tensor, State]:
        read = steps.read_positions(self, self.table_to, x, mask)
        return super().fast_read(x, mask) if read is None else read

    def decoder_parts(self) -> native_decoder.Parts | None:
        return [(native_decoder.PositionTable(self.table_to, steps.plain_step(self)), ())]


class SinusoidalPositions(Positions):
    """Adds sines and cosines of the position (Vaswani et al., 2017); they never end. The state counts what was read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rate", frequencies(size), persistent=False)
        self.rate: Tensor

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return self.rate.new_zeros(batch, dtype=torch.long)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        positions, state = count_positions(x, state, None if self.count_padding else mask)
        return zero_padding(x + sinusoids(positions, self.rate, x.shape[2]), mask), state

    def tabulate(self, length: int) -> tuple[str, Tensor]:
        positions = torch.arange(length, device=self.rate.device)
        return "sinusoidal positions", sinusoids(positions, self.rate, 2 * len(self.rate))

    def table_to(self, furthest: int, x: Tensor) -> Tensor:
        return sinusoids(torch.arange(2 * furthest + 64, device=x.device), self.rate, x.shape[-1])


class LearnedPositions(Positions):
    """Adds a learned vector for each position, up to `longest` of them; the table has `offset` more in front of them,
    which no element is given (in RoBERTa, that of the padding is one)."""

    def __init__(self, size: int, longest: int, offset: int = 0) -> None:
        super().__init__()
        self.table, self.offset = nn.Parameter(torch.randn(offset + longest, size) * 0.02), offset
        self.longest: int = longest

    def initial_state(self, batch: int, memory: Memory | None = None) -> State:
        return torch.zeros(batch, dtype=torch.long, device=self.table.device)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        positions, state = count_positions(x, state, None if self.count_padding else mask)
        if x.shape[1] and int(positions.max()) >= self.longest:
            raise ValueError(f"{int(positions.max()) + 1} elements are more than the {self.longest} positions learned")
        return zero_padding(x + self.table[positions.clamp(min=0) + self.offset], mask), state

    def tabulate(self, length: int) -> tuple[str, Tensor]:
        return "learned positions", self.table[self.offset :][:length]

    def table_to(self, furthest: int, x: Tensor) -> Tensor | None:
        known = self.table[self.offset :]
        return known if furthest < len(known) else None


class Rotation(nn.Module):
    """What attention does to queries and keys (B, heads, T, width) at their positions."""

    turns: bool = True  # whether it does anything
    native: bool = False  # whether native code knows it, by its rate
    rate: Tensor | None  # how far each pair of features turns from one position to the next

    @abstractmethod
    def initial_state(self, x: Tensor) -> State:
        """How many elements of x (B, …) were read before the first."""

    @abstractmethod
    def positions(self, x: Tensor, before: State, mask: Tensor | None) -> tuple[State, State]:
        """What `forward` needs to know of x (B, T, D), and how many elements were read in all."""

    @abstractmethod
    def forward(self, x: Tensor, positions: State) -> Tensor: ...


class NoRotation(Rotation):
    """Nothing: the positions are known otherwise, or not at all."""

    turns, native, rate = False, True, None

    def initial_state(self, x: Tensor) -> State:
        return None

    def positions(self, x: Tensor, before: State, mask: Tensor | None) -> tuple[State, State]:
        return before, before

    def forward(self, x: Tensor, positions: State) -> Tensor:
        return x


class Rotary(Rotation):
    """Turns each pair of features by an angle that grows with the position, so that only distances count
    (Su et al., 2021)."""

    native = True

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"rotary positions turn pairs of features, but a head is {width} wide, an odd number")
        self.register_buffer("rate", frequencies(width), persistent=False)
        self.rate: Tensor

    def initial_state(self, x: Tensor) -> State:
        return x.new_zeros(x.shape[0], dtype=torch.long)

    def positions(self, x: Tensor, before: State, mask: Tensor | None) -> tuple[State, State]:
        return count_positions(x, before, mask)

    def forward(self, x: Tensor, positions: State) -> Tensor:
        angle = positions[:, None, :, None] * self.rate  # (B, 1, T, width / 2)
        sin, cos = angle.sin(), angle.cos()
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def tabulate(self, length: int) -> tuple[str, Tensor]:
        """A query of ones, turned by each position."""
        ones = self.rate.new_ones(1, 1, length, 2 * len(self.rate))
        return "rotary positions", self(ones, torch.arange(length, device=self.rate.device)[None])[0, 0]
