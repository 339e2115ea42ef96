"""The probabilities of a given beginning, token by token: what `echo` with `logprobs` tells."""

from collections.abc import Sequence

import torch

from ..errors import DataError
from .models import Model
from .writing import Token


@torch.no_grad()
def score_prompt(model: Model, prompt: str | Sequence[int], alternatives: int) -> list[Token]:
    """The tokens of a beginning, each with its log-probability after those before it; the first has none.

    Tokens by number are read as they are; in front of a text stands what such a text begins with.
    """
    task = model.language
    if isinstance(prompt, str):
        ids, read = task.target.encode(prompt).tolist(), task.writer.encode_opening(prompt)
    else:
        ids = read = list(prompt)
    shape = task.shape
    if not shape.carries and len(read) > shape.window:
        raise DataError(
            f"the prompt has {len(ids)} tokens, but the probabilities of at most {shape.window} are given: "
            "this model's attention was trained on windows of that length (train.bptt_window)"
        )
    if not ids:
        return []
    net = model.generator
    logits, _ = net(torch.tensor([read]), net.initial_state(1))
    before = logits[0, len(read) - len(ids) :].double().log_softmax(-1)  # place i tells token i + 1
    names, tokens, offset = task.target.names(ids), [], 0
    for place, (token, name) in enumerate(zip(ids, names, strict=True)):
        text = task.target.decode(ids[: place + 1])[offset:]
        if place == 0:
            tokens.append(Token(0, text, name, None, "", None, 0))
        else:
            logs = before[place - 1]
            top, which = logs.topk(min(alternatives, len(logs)))
            others = dict(zip(task.target.names(which.tolist()), top.tolist(), strict=True))
            tokens.append(Token(0, text, name, float(logs[token]), "", others, offset))
        offset += len(text)
    return tokens
