"""Which JSON is read: plain, and not too deep."""

import json
from collections.abc import Iterator
from typing import Any

from .limits import Refused

LARGEST = 1 << 63  # of a whole number


def check_json(body: bytes, depth: int) -> None:
    """Refuse what is no plain JSON: NaN, numbers beyond 64 bits, deep nesting, half a surrogate pair."""
    try:
        for value, level in walk(json.loads(body.decode("utf-8"), parse_constant=refuse_constant)):
            if level > depth:
                raise Refused(400, "json", f"the JSON is nested more than {depth} deep")
            if isinstance(value, float) and value - value != 0:
                raise ValueError("a number is too large")
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ValueError("a whole number is beyond 64 bits")
            if isinstance(value, str):
                value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(400, "json", "the JSON holds half of a surrogate pair, which is no text") from None
    except RecursionError:
        raise Refused(400, "json", f"the JSON is nested more than {depth} deep") from None
    except ValueError as error:
        raise Refused(400, "json", f"the body is no JSON: {str(error)[:120]}") from None


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def walk(value: Any) -> Iterator[tuple[Any, int]]:
    """Every value and every key, with how deep it stands."""
    waiting = [(value, 1)]
    while waiting:
        node, level = waiting.pop()
        yield node, level
        if isinstance(node, dict):
            waiting += [(one, level + 1) for pair in node.items() for one in pair]
        elif isinstance(node, list):
            waiting += [(one, level + 1) for one in node]
