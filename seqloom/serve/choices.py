"""Texts on their way, as OpenAI tells them."""

from dataclasses import dataclass, field, replace
from typing import Any

from ..data.vocabulary import END, SPECIALS
from ..runs.json_output import replace_nonfinite
from .writing import Token

FINISHES = {"end": "stop", "stop": "stop", "length": "length", "time": "length"}


@dataclass
class Choice:
    """One text while it is generated."""

    index: int
    start: int = 0  # the characters before it, for offsets
    text: str = ""
    finish: str | None = None
    tokens: list[Token] = field(default_factory=list)
    written: int = 0

    def add(self, token: Token, generated: bool = True) -> None:
        self.text += token.text
        self.written += generated
        self.finish = FINISHES[token.finish] if token.finish else None
        if token.finish == "end":  # which was written, and harnesses leave out the last entry
            token = replace(token, name=token.name or SPECIALS[END])
        if token.name:
            self.tokens.append(token)

    def to_json(self, logprobs: bool) -> dict[str, Any]:
        values: dict[str, Any] | None = None
        if logprobs:
            offsets, offset = [], self.start
            for token in self.tokens:
                offsets.append(offset)
                offset += len(token.text)
            values = {
                "tokens": [token.name for token in self.tokens],
                "token_logprobs": [token.log for token in self.tokens],
                "top_logprobs": [token.alternatives for token in self.tokens],
                "text_offset": offsets,
            }
        shown = {
            "index": self.index,
            "text": self.text,
            "logprobs": replace_nonfinite(values),
            "finish_reason": self.finish,
        }
        return shown


def usage_of(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
