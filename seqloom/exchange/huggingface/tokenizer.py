"""The tokenizer of a folder."""

from pathlib import Path
from typing import Any


class FolderTokenizer:
    largest_id = 0
    files: dict[str, bytes] = {}


def read_tokenizer(folder: Path, family: str, config: dict[str, Any]) -> FolderTokenizer | None:
    return None
