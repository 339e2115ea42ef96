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

# Signs for the characters that XML, and so a picture, cannot hold.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n\r"} | dict.fromkeys(
    (0xFFFE, 0xFFFF), 0xFFFD
)


def format_token(token: str) -> str:
    """A token that can be seen and understood: blanks are drawn, those with a meaning of their own are called by it."""
    shown = token.translate(CONTROLS)
    return WORDS.get(shown, shown) if shown.strip() else "␣" * max(len(shown), 1)
