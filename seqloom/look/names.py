"""How a token is shown, on an axis and in a drawing."""


def format_token(token: str) -> str:
    """A token that can be seen: blanks are drawn."""
    return token if token.strip() else "␣" * max(len(token), 1)
