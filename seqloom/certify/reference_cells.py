"""Every cell once more, for one sequence and one step at a time, as its paper writes it.

A step takes the weights by name, an input vector and the entries before, and gives the entries after. Matrices of
several gates are stacked in the order in which the gates are taken apart here.
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
    """Schuster and Paliwal (1997): one sequence (T, D), forwards by one cell, backwards by another: (T, size) each."""
    everything = torch.ones(1, len(x), dtype=torch.bool)
    first = tuple(entry[None] for entry in start)
    forwards, _ = read(step, there, x[None], first, everything)
    backwards, _ = read(step, back, torch.stack(list(reversed(x)))[None], first, everything)
    return forwards[0], torch.stack(list(reversed(backwards[0])))


def convolution(p: Parameters, x: Tensor, window: int, ahead: int = 0) -> Tensor:
    """y_t = W [x_{t−w+1}; …; x_t] + b over one sequence (T, D); `ahead`: so much of the window lies in front."""
    outputs, nothing = [], torch.zeros_like(x[0])
    for t in range(len(x)):
        places = range(t + ahead - window + 1, t + ahead + 1)
        outputs.append(p.affine("product", torch.cat([x[i] if 0 <= i < len(x) else nothing for i in places])))
    return torch.stack(outputs)


def products(p: Parameters, count: int, x: Tensor, h: Tensor) -> list[Tensor]:
    """W x + U h + b of each of so many gates and candidates, one matrix a gate."""
    rows = zip(p["W.weight"].chunk(count), p["U.weight"].chunk(count), p.bias("W").chunk(count), strict=True)
    return [W @ x + U @ h + b for W, U, b in rows]


def elman(p: Parameters, x: Tensor, entries: Vectors, phi: Activation = tanh) -> Vectors:
    """Elman (1990)."""
    (h,) = entries
    W, U, b = p["W.weight"], p["U.weight"], p.bias("W")
    return (phi(W @ x + U @ h + b),)


def lstm(p: Parameters, x: Tensor, entries: Vectors, candidate: Activation = tanh) -> Vectors:
    """Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000)."""
    h, c = entries
    i, f, new, o = products(p, 4, x, h)
    c = sigmoid(f) * c + sigmoid(i) * candidate(new)
    return sigmoid(o) * tanh(c), c


def step_projected_lstm(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Sak et al. (2014): two memory sizes; the gates are as wide as c, and h is a projection."""
    h, c = lstm(p, x, entries)
    return p["P.weight"] @ h, c


def peephole(p: Parameters, x: Tensor, entries: Vectors, late: bool = True) -> Vectors:
    """Gers and Schmidhuber (2000). o sees the new c if `late`, else the old one."""
    h, old = entries
    i, f, new, o = products(p, 4, x, h)
    V_i, V_f, V_o = (get_peephole(p, gate, len(old)) for gate in "ifo")
    c = sigmoid(f + V_f @ old) * old + sigmoid(i + V_i @ old) * tanh(new)
    return sigmoid(o + V_o @ (c if late else old)) * tanh(c), c


def get_peephole(p: Parameters, gate: str, size: int) -> Tensor:
    """The matrix by which a gate sees c: full, diagonal, or zero."""
    V = p.get(f"V.{gate}.weight", torch.zeros(size, dtype=torch.float64))
    return V if V.dim() == 2 else torch.diag(V)


def coupled(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """i = 1 − f."""
    h, c = entries
    f, new, o = products(p, 3, x, h)
    c = sigmoid(f) * c + (1 - sigmoid(f)) * tanh(new)
    return sigmoid(o) * tanh(c), c


def normed_lstm(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Ba et al. (2016): both products are normalized over all gates together, and c on its way out."""
    h, c = entries
    from_input = layer_norm(p["W.0.weight"] @ x, p["W.1.weight"], p.bias("W.1"))
    from_state = layer_norm(p["U.weight"] @ h, p["norm_h.weight"])
    i, f, new, o = (from_input + from_state).chunk(4)
    c = sigmoid(f) * c + sigmoid(i) * tanh(new)
    return sigmoid(o) * tanh(layer_norm(c, p["norm_c.weight"], p["norm_c.bias"])), c


def gru_after(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Cho et al. (2014) as cuDNN has it: the reset gate after the matrix."""
    (h,) = entries
    x_r, x_u, x_n = p.affine("W", x).chunk(3)
    h_r, h_u, h_n = p.affine("U", h).chunk(3)
    r, u = sigmoid(x_r + h_r), sigmoid(x_u + h_u)
    return (u * h + (1 - u) * tanh(x_n + r * h_n),)


def gru_before(p: Parameters, x: Tensor, entries: Vectors, read: str = "W") -> Vectors:
    """Cho et al. (2014): the reset gate before the matrix."""
    (h,) = entries
    x_r, x_u, x_n = p.affine(read, x).chunk(3)
    U_r, U_u = p["U.weight"].chunk(2)
    r, u = sigmoid(x_r + U_r @ h), sigmoid(x_u + U_u @ h)
    return (u * h + (1 - u) * tanh(x_n + p["U_n.weight"] @ (r * h)),)


def normed_gru(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Ba et al. (2016): both products are normalized over all gates together; the reset gate after the matrix."""
    (h,) = entries
    x_r, x_u, x_n = layer_norm(p["W.0.weight"] @ x, p["W.1.weight"], p.bias("W.1")).chunk(3)
    h_r, h_u, h_n = layer_norm(p["U.weight"] @ h, p["norm_h.weight"], p.bias("norm_h")).chunk(3)
    r, u = sigmoid(x_r + h_r), sigmoid(x_u + h_u)
    return (u * h + (1 - u) * tanh(x_n + r * h_n),)


def gru_d(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Che et al. (2018): values, a 1 where they were observed, and the time since they last were."""
    h, last = entries
    channels = len(last)
    values, observed, gaps = x[:channels], x[channels : 2 * channels], x[2 * channels :]
    imputed, latest = [], []
    for k in range(channels):
        fading = torch.exp(-relu(p["fade_x"][0, k] * gaps[k] + p["fade_x"][1:, k].sum()))
        missing = fading * last[k] + (1 - fading) * p["mean"][k]
        imputed.append(values[k] if observed[k] == 1 else missing)
        latest.append(values[k] if observed[k] == 1 else last[k])
    h = torch.exp(-relu(p.affine("fade_h", gaps))) * h
    (h,) = gru_before(p, torch.cat([torch.stack(imputed), observed]), (h,), read="V")
    return h, torch.stack(latest)


def min_gru(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Feng et al. (2024): neither the gate nor what is new sees h."""
    (h,) = entries
    u, new = p.affine("W", x).chunk(2)
    return (sigmoid(u) * h + (1 - sigmoid(u)) * new,)


def min_lstm(p: Parameters, x: Tensor, entries: Vectors) -> Vectors:
    """Feng et al. (2024): the two gates share the memory out between them."""
    (h,) = entries
    i, f, new = p.affine("W", x).chunk(3)
    i, f = sigmoid(i), sigmoid(f)
    return (f / (f + i) * h + i / (f + i) * new,)


def apply_zoneout(p: Parameters, x: Tensor, entries: Vectors, step: Step, share: float) -> Vectors:
    """Krueger et al. (2017): out of training, each unit moves by the share that moves on average in training."""
    after = step(p.select_part("cell"), x, entries)
    return tuple(share * old + (1 - share) * new for old, new in zip(entries, after, strict=True))


STEPS: dict[str, Step] = {  # by the names in `CELLS`
    "rnn": elman,
    "rnn-relu": partial(elman, phi=relu),
    "rnn-identity": partial(elman, phi=identity),
    "rnn-sigmoid": partial(elman, phi=sigmoid),
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
    "zoneout": partial(apply_zoneout, step=lstm, share=0.2),
    "orthogonal": elman,
    "spectral": gru_after,
}
