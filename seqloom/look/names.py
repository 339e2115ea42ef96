"""What tokens, gates and states are called, on an axis, in a drawing and in a list of them."""

from ..data.vocabulary import SPECIALS

GATES = {
    "i": "input gate i (lets in)",
    "f": "forget gate f (keeps)",
    "o": "output gate o (lets out)",
    "r": "reset gate r (opens the old state)",
    "u": "update gate u (keeps)",
    "g": "candidate g (what is new)",
    "n": "candidate n (what is new)",
}
STATES = {"h": "hidden state h (output)", "c": "cell state c (memory)", "x": "last value x (as observed)"}
WORDS = dict(zip(SPECIALS, ("(padding)", "(unknown)", "(start)", "(end)"), strict=True)) | {"<start>": "(start)"}


def format_token(token: str) -> str:
    """A token that can be seen and understood: blanks are drawn, those with a meaning of their own are called by it."""
    return WORDS.get(token, token) if token.strip() else "␣" * max(len(token), 1)
