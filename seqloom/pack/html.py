"""The file itself: data, style and one script, and a policy that allows nothing else."""

import base64
import hashlib
import json
from html import escape
from typing import Any


def write_page(title: str, style: str, model: dict[str, Any], weights: str, script: str) -> str:
    """A page that may run just this script, and may ask no network for anything."""
    policy = (
        f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    # No text of a vocabulary or an example may end the block that it stands in.
    data = json.dumps(model, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    assert "</script" not in script and "<!--" not in script and "</style" not in style
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{escape(title)}</title>'
        f'<link rel="icon" href="data:,"><style>{style}</style></head><body><main></main>'
        f'<script type="application/json" id="model">{data}</script>'
        f'<script type="text/plain" id="weights">{weights}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
