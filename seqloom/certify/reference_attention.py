"""Every attention once more: for one sequence, one query and one key at a time, with sums that are written out."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .reference_cells import Step, Vectors
from .reference_maths import Parameters, softmax, tanh

Score = Callable[[Parameters, Tensor, Tensor], Tensor]  # of a query and an element of the memory
Turn = Callable[[Tensor, int], Tensor]  # a query or key at a position
Sees = Callable[[int, int], bool]  # whether query i may look at key j


def score_additive(p: Parameters, q: Tensor, k: Tensor) -> Tensor:
    """Bahdanau et al. (2015): w₂ᵀ tanh(W₁ [q; k] + b)."""
    W_1, w_2 = torch.cat([p["shift.weight"], p["key.weight"]], 1), p["judge.weight"][0]
    return w_2 @ tanh(W_1 @ torch.cat([q, k]) + p["shift.bias"])


def dot(p: Parameters, q: Tensor, k: Tensor) -> Tensor:
    """Luong et al. (2015): qᵀ (W k)."""
    return q @ (p["key.weight"] @ k)


def score_scaled_dot(p: Parameters, q: Tensor, k: Tensor) -> Tensor:
    """Vaswani et al. (2017): qᵀ (W k) / √d."""
    return q @ (p["key.weight"] @ k) / math.sqrt(len(q))


def score_projected(p: Parameters, q: Tensor, k: Tensor) -> Tensor:
    """Vaswani et al. (2017), one head: (W_q q)ᵀ (W_k k) / √d."""
    return score_scaled_dot(p, p["query.weight"] @ q, k)


SCORES: dict[str, Score] = {
    "additive": score_additive,
    "dot": dot,
    "scaled": score_scaled_dot,
    "projected": score_projected,
}


def weigh_softly(scores: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
    """The mean of the values, weighed by the softmax of the scores."""
    return sum((weight * value for weight, value in zip(softmax(list(scores)), values, strict=True)), 0 * values[0])


def pick_best(scores: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
    """The value of the best score; its gradient is that of the soft mean (straight through)."""
    best = max(range(len(scores)), key=lambda place: float(scores[place].detach()))
    mean = weigh_softly(scores, [value.detach() for value in values])
    return values[best] + mean - mean.detach()


def attend_memory(p: Parameters, score: Score, look: Callable[..., Tensor], queries: Tensor, memory: Tensor) -> Tensor:
    """One row: what each query sees of the memory (S, M), which has no padding; where there is nothing, zeros."""
    if not len(memory):
        return torch.zeros(len(queries), memory.shape[1], dtype=memory.dtype)
    values = [p["value.weight"] @ v for v in memory] if score is score_projected else list(memory)
    return torch.stack([look([score(p, q, k) for k in memory], values) for q in queries])


def keep_still(x: Tensor, position: int) -> Tensor:
    return x


def rotary(x: Tensor, position: int) -> Tensor:
    """Su et al. (2021): features 2j and 2j + 1 turned by the angle position / 10000^(2j/d)."""
    turned = []
    for j in range(len(x) // 2):
        angle = position / 10000 ** (2 * j / len(x))
        cos, sin = math.cos(angle), math.sin(angle)
        turned += [cos * x[2 * j] - sin * x[2 * j + 1], sin * x[2 * j] + cos * x[2 * j + 1]]
    return torch.stack(turned)


def see_everything(i: int, j: int) -> bool:
    return True


def see_past(i: int, j: int) -> bool:
    return j <= i


def multi_head(
    W: tuple[Tensor, Tensor, Tensor],
    b: tuple[Tensor, Tensor, Tensor],
    out: Callable[[Tensor], Tensor],
    heads: int,
    queries: Tensor,
    memory: Tensor,
    sees: Sees = see_everything,
    turn: Turn = keep_still,
    look: Callable[..., Tensor] = weigh_softly,
) -> Tensor:
    """Vaswani et al. (2017): in each head, every query looks at all keys that it may see, scaled by √(width of a head).

    Queries (T, D), memory (S, M), without padding. W and b are those of queries, keys and values, all heads stacked.
    """
    W_q, W_k, W_v = (matrix.chunk(heads) for matrix in W)
    b_q, b_k, b_v = (vector.chunk(heads) for vector in b)
    outputs = []
    for i in range(len(queries)):
        contexts = []
        for head in range(heads):
            q = turn(W_q[head] @ queries[i] + b_q[head], i)
            places = [j for j in range(len(memory)) if sees(i, j)]
            keys = [turn(W_k[head] @ memory[j] + b_k[head], j) for j in places]
            values = [W_v[head] @ memory[j] + b_v[head] for j in places]
            width = W_v[head].shape[0]
            scores = [q @ k / math.sqrt(len(q)) for k in keys]
            contexts.append(look(scores, values) if places else torch.zeros(width, dtype=queries.dtype))
        outputs.append(out(torch.cat(contexts)))
    return torch.stack(outputs)


def attend_self(
    p: Parameters,
    x: Tensor,
    heads: int,
    width: int,
    sees: Sees,
    turn: Turn = keep_still,
    look: Callable[..., Tensor] = weigh_softly,
) -> Tensor:
    """Queries, keys and values of the same sequence (T, D); `project` stacks all three."""
    rows = [heads * width, heads * width, len(p["project.weight"]) - 2 * heads * width]
    W_q, W_k, W_v = p["project.weight"].split(rows)
    b_q, b_k, b_v = p.bias("project").split(rows)
    out = lambda context: p.affine("attend.out", context)  # noqa: E731
    return multi_head((W_q, W_k, W_v), (b_q, b_k, b_v), out, heads, x, x, sees, turn, look)


def cross_attention(
    p: Parameters, x: Tensor, memory: Tensor, heads: int, look: Callable[..., Tensor] = weigh_softly
) -> Tensor:
    """Queries of one sequence (T, D), keys and values of another (S, M)."""
    rows = [len(p["query.weight"]), len(p["key_value.weight"]) - len(p["query.weight"])]
    W_k, W_v = p["key_value.weight"].split(rows)
    b_k, b_v = p.bias("key_value").split(rows)
    out = lambda context: p.affine("attend.out", context)  # noqa: E731
    return multi_head((p["query.weight"], W_k, W_v), (p.bias("query"), b_k, b_v), out, heads, x, memory, look=look)


def pool(p: Parameters, values: Tensor) -> Tensor:
    """Each learned query looks at the whole sequence (S, D); what they find is joined."""
    heads = []
    for query in p["queries"]:
        scores = [query @ p.affine("key", value) / math.sqrt(len(query)) for value in values]
        heads.append(weigh_softly(scores, list(values)))
    return p.affine("join", torch.cat(heads))


def apply_non_local(p: Parameters, x: Tensor) -> Tensor:
    """Wang et al. (2018): z_i = x_i + W_z Σ_j softmax_j(θ(x_i)ᵀ φ(x_j) / √d) g(x_j), over places (N, channels)."""
    theta, phi, g = p["project.weight"].chunk(3)
    b_theta, b_phi, b_g = p.bias("project").chunk(3)
    changed = []
    for x_i in x:
        scores = [(theta @ x_i + b_theta) @ (phi @ x_j + b_phi) / math.sqrt(len(theta)) for x_j in x]
        changed.append(x_i + p.affine("out", weigh_softly(scores, [g @ x_j + b_g for x_j in x])))
    return torch.stack(changed)


def luong(p: Parameters, score: Score, x: Tensor, memory: Tensor) -> Tensor:
    """Luong et al. (2015): the context is joined to the decoder's state before the word is chosen."""
    context = attend_memory(p.select_part("attention"), score, weigh_softly, x, memory)
    return torch.stack([tanh(p.affine("join", torch.cat(pair))) for pair in zip(x, context, strict=True)])


def bahdanau(p: Parameters, score: Score, step: Step, x: Tensor, memory: Tensor, entries: Vectors) -> Tensor:
    """Bahdanau et al. (2015): what h sees of the memory is fed into the cell with the input."""
    outputs = []
    for x_t in x:
        (context,) = attend_memory(p.select_part("attention"), score, weigh_softly, entries[0][None], memory)
        entries = step(p.select_part("cell"), torch.cat([x_t, context]), entries)
        outputs.append(entries[0])
    return torch.stack(outputs)
