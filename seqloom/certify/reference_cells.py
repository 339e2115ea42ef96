"""Every cell once more, for one sequence at a time and one matrix a gate, as the lecture slides write it.

A step takes the weights by name, an input vector and the entries before, and gives the entries after. The product
stacks the matrices of all gates into one; here they are taken apart first, in the order in which they are stacked.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from .reference_maths import Parameters, identity, layer_norm, relu, sigmoid, tanh

Vectors = tuple[Tensor, ...]
Step = Callable[[Parameters, Tensor, Vectors], Vectors]
Activation = Callable[[Tensor], Tensor]


def read(step: Step, p: Parameters, x: Tensor, entries: Vectors, mask: Tensor) -> tuple[Tensor, Vectors]:
    """Row after row, step after step: all outputs (zero where there is padding) and the last entries."""
    outputs, last = [], []
    for row in range(len(x)):
        now, row_outputs = tuple(entry[row] for entry in entries), []
        for time in range(x.shape[1]):
            if mask[row, time]:
                now = step(p, x[row, time], now)
            row_outputs.append(now[0] if mask[row, time] else torch.zeros_like(now[0]))
        outputs.append(torch.stack(row_outputs))
        last.append(now)
    return torch.stack(outputs), tuple(torch.stack(rows) for rows in zip(*last, strict=True))


def bidirectional(step: Step, there: Parameters, back: Parameters, x: Tensor, start: Vectors) -> tuple[Tensor, Tensor]:
    """L2: one sequence (T, D) without padding, forwards by one cell and backwards by another: (T, size) of each."""
    everything = torch.ones(1, len(x), dtype=torch.bool)
    first = tuple(entry[None] for entry in start)
    forwards, _ = read(step, there, x[None], first, everything)
    backwards, _ = read(step, back, torch.stack(list(reversed(x)))[None], first, everything)
    return forwards[0], torch.stack(list(reversed(backwards[0])))


def convolution(p: Parameters, x: Tensor, window: int, ahead: int = 0) -> Tensor:
    """C11: y_t = W [x_{t−w+1}; …; x_t] + b over one sequence (T, D); `ahead`: so much of the window lies in front."""
    outputs, nothing = [], torch.zeros_like(x[0])
    for t in range(len(x)):
        places = range(t + ahead - window + 1, t + ahead + 1)
        outputs.append(p.affine("product", torch.cat([x[i] if 0 <= i < len(x) else nothing for i in places])))
    return torch.stack(outputs)


def elman(p: Parameters, x: Tensor, entries: Vectors, phi: Activation = tanh) -> Vectors:
    """C1."""
    (h,) = entries
    W, U, b = p["W.weight"], p["U.weight"], p.bias("W")
    return (phi(W @ x + U @ h + b),)


def lstm(p: Parameters, x: Tensor, entries: Vectors, candidate: Activation = tanh) -> Vectors:
    """C2."""
    h, c = entries
    W_i, W_f, W_c, W_o = p["W.weight"].chunk(4)
    U_i, U_f, U_c, U_o = p["U.weight"].chunk(4)
    b_i, b_f, b_c, b_o = p.bias("W").chunk(4)
    f = sigmoid(W_f @ x + U_f @ h + b_f)
    i = sigmoid(W_i @ x + U_i @ h + b_i)
    o = sigmoid(W_o @ x + U_o @ h + b_o)
    new = candidate(W_c @ x + U_c @ h + b_c)
    c = f * c + i * new
    return o * tanh(c), c


def projected(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C13: two memory sizes; the gates are as wide as c, and h is a projection."""
    h, c = lstm(p, x, entries)
    return p["P.weight"] @ h, c


def peephole(p: Parameters, x: Tensor, entries: Vectors, late: bool = True) -> Vectors:
    """C3. o sees the new c if `late`, else the old one."""
    h, old = entries
    W_i, W_f, W_c, W_o = p["W.weight"].chunk(4)
    U_i, U_f, U_c, U_o = p["U.weight"].chunk(4)
    b_i, b_f, b_c, b_o = p.bias("W").chunk(4)
    V_i, V_f, V_o = (seeing(p, gate, len(old)) for gate in "ifo")
    f = sigmoid(W_f @ x + U_f @ h + V_f @ old + b_f)
    i = sigmoid(W_i @ x + U_i @ h + V_i @ old + b_i)
    c = f * old + i * tanh(W_c @ x + U_c @ h + b_c)
    o = sigmoid(W_o @ x + U_o @ h + V_o @ (c if late else old) + b_o)
    return o * tanh(c), c


def seeing(p: Parameters, gate: str, size: int) -> Tensor:
    """The matrix by which a gate sees c: full, diagonal, or zero."""
    V = p.get(f"V.{gate}.weight", torch.zeros(size, dtype=torch.float64))
    return V if V.dim() == 2 else torch.diag(V)


def coupled(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C4: i = 1 − f."""
    h, c = entries
    W_f, W_c, W_o = p["W.weight"].chunk(3)
    U_f, U_c, U_o = p["U.weight"].chunk(3)
    b_f, b_c, b_o = p.bias("W").chunk(3)
    f = sigmoid(W_f @ x + U_f @ h + b_f)
    i = 1 - f
    o = sigmoid(W_o @ x + U_o @ h + b_o)
    c = f * c + i * tanh(W_c @ x + U_c @ h + b_c)
    return o * tanh(c), c


def normed_lstm(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C12: both products are normalized over all gates together, and c on its way out."""
    h, c = entries
    from_input = layer_norm(p["W.0.weight"] @ x, p["W.1.weight"], p.bias("W.1"))
    from_state = layer_norm(p["U.weight"] @ h, p["norm_h.weight"])
    i, f, new, o = (from_input + from_state).chunk(4)
    c = sigmoid(f) * c + sigmoid(i) * tanh(new)
    return sigmoid(o) * tanh(layer_norm(c, p["norm_c.weight"], p["norm_c.bias"])), c


def gru_after(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C5, the reset gate after the matrix."""
    (h,) = entries
    W_r, W_u, W_n = p["W.weight"].chunk(3)
    U_r, U_u, U_n = p["U.weight"].chunk(3)
    b_r, b_u, b_n = p.bias("W").chunk(3)
    d_r, d_u, d_n = p.bias("U").chunk(3)
    r = sigmoid(W_r @ x + b_r + U_r @ h + d_r)
    u = sigmoid(W_u @ x + b_u + U_u @ h + d_u)
    new = tanh(W_n @ x + b_n + r * (U_n @ h + d_n))
    return (u * h + (1 - u) * new,)


def gru_before(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C5, the reset gate before the matrix."""
    (h,) = entries
    W_r, W_u, W_n = p["W.weight"].chunk(3)
    U_r, U_u = p["U.weight"].chunk(2)
    U_n = p["U_n.weight"]
    b_r, b_u, b_n = p.bias("W").chunk(3)
    r = sigmoid(W_r @ x + U_r @ h + b_r)
    u = sigmoid(W_u @ x + U_u @ h + b_u)
    new = tanh(W_n @ x + U_n @ (r * h) + b_n)
    return (u * h + (1 - u) * new,)


def normed_gru(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C12: both products are normalized over all gates together; the reset gate after the matrix."""
    (h,) = entries
    x_r, x_u, x_n = layer_norm(p["W.0.weight"] @ x, p["W.1.weight"], p.bias("W.1")).chunk(3)
    h_r, h_u, h_n = layer_norm(p["U.weight"] @ h, p["norm_h.weight"], p.bias("norm_h")).chunk(3)
    r, u = sigmoid(x_r + h_r), sigmoid(x_u + h_u)
    return (u * h + (1 - u) * tanh(x_n + r * h_n),)


def gru_d(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C7: values, a 1 where they were observed, and the time since they last were, one channel after another."""
    h, last = entries
    channels = len(last)
    values, observed, gaps = x[:channels], x[channels : 2 * channels], x[2 * channels :]
    seen, kept = [], []
    for k in range(channels):
        fading = torch.exp(-relu(p["fade_x"][0, k] * gaps[k] + p["fade_x"][1, k]))
        missing = fading * last[k] + (1 - fading) * p["mean"][k]
        seen.append(values[k] if observed[k] == 1 else missing)
        kept.append(values[k] if observed[k] == 1 else last[k])
    h = torch.exp(-relu(p["fade_h.weight"] @ gaps + p["fade_h.bias"])) * h
    both = torch.cat([torch.stack(seen), observed])
    W_r, W_u, W_n = p["V.weight"].chunk(3)
    b_r, b_u, b_n = p.bias("V").chunk(3)
    U_r, U_u = p["U.weight"].chunk(2)
    r = sigmoid(W_r @ both + U_r @ h + b_r)
    u = sigmoid(W_u @ both + U_u @ h + b_u)
    new = tanh(W_n @ both + p["U_n.weight"] @ (r * h) + b_n)
    return u * h + (1 - u) * new, torch.stack(kept)


def min_gru(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C9: neither the gate nor what is new sees h."""
    (h,) = entries
    W_u, W_n = p["W.weight"].chunk(2)
    b_u, b_n = p.bias("W").chunk(2)
    u = sigmoid(W_u @ x + b_u)
    return (u * h + (1 - u) * (W_n @ x + b_n),)


def min_lstm(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """C9: the two gates share the memory out between them."""
    (h,) = entries
    W_i, W_f, W_n = p["W.weight"].chunk(3)
    b_i, b_f, b_n = p.bias("W").chunk(3)
    i, f = sigmoid(W_i @ x + b_i), sigmoid(W_f @ x + b_f)
    return (f / (f + i) * h + i / (f + i) * (W_n @ x + b_n),)


def zoned_out(p: Parameters, x: Tensor, entries: Vectors, step: Step, share: float) -> Vectors:
    """C12: out of training, each unit moves by the share that moves on average in training."""
    after = step(p.under("cell"), x, entries)
    return tuple(share * old + (1 - share) * new for old, new in zip(entries, after, strict=True))


STEPS: dict[str, Step] = {  # by the names in `CELLS`
    "rnn": elman,
    "rnn-relu": partial(elman, phi=relu),
    "rnn-identity": partial(elman, phi=identity),
    "lstm": lstm,
    "lstm-sigmoid": partial(lstm, candidate=sigmoid),
    "lstm-normed": normed_lstm,
    "peephole": peephole,
    "peephole-full": peephole,
    "peephole-early": partial(peephole, late=False),
    "coupled": coupled,
    "gru": gru_after,
    "gru-before": gru_before,
    "gru-normed": normed_gru,
    "mingru": min_gru,
    "minlstm": min_lstm,
    "gru-d": gru_d,
    "zoneout": partial(zoned_out, step=lstm, share=0.2),
    "orthogonal": elman,
    "spectral": gru_after,
}
