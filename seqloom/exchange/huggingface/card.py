"""The model card of a folder: what is in it and how it is used, for people and for the front matter's readers."""

from .model import PretrainedModel

PIPELINES = {
    "masked": "fill-mask",
    "sequence": "text-classification",
    "token": "token-classification",
    "language": "text-generation",
    "translation": "translation",
    "none": "feature-extraction",
}


def write_card(model: PretrainedModel, name: str) -> str:
    """The README.md of a folder."""
    head, settings = model.family.architectures[model.architecture], model.settings
    facts = {
        "parameters": f"{model.count_parameters():,}",
        "features": f"{settings.size:,}",
        "vocabulary": f"{settings.vocabulary:,} tokens",
        "positions": f"{settings.positions:,}",
    }
    if head in ("sequence", "token"):
        facts["labels"] = ", ".join(list(settings.id2label.values())[:8]) + (" …" if settings.labels > 8 else "")
    table = "\n".join(f"| {fact} | {value} |" for fact, value in facts.items())
    without = "" if model.tokenizer is not None else "\nThe folder holds no tokenizer: the model is asked by ids.\n"
    return f"""---
library_name: transformers
pipeline_tag: {PIPELINES[head]}
tags:
- {model.family.name}
- seqloom
---

# {name}

A {model.family.name} ({model.architecture}), written by seqloom.

| | |
|---|---|
{table}
{without}
## Use

```python
from transformers import {model.architecture}

model = {model.architecture}.from_pretrained("{name}")
```

```python
from seqloom.exchange import huggingface

model = huggingface.load("{name}")
```
"""
