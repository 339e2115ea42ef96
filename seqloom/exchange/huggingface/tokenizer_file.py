"""The tokenizer of a run as a tokenizer.json: byte-pair encoding that was learned here, under the same numbers."""

from pathlib import Path
from typing import Any

from ...data.masking import MASK
from ...data.vocabulary import SPECIALS
from ...fields import Text
from ...fields.subwords import UNIT
from ...training.files import json_bytes
from .tokenizer import LibraryTokenizer

ROLES = {"pad_token": SPECIALS[0], "unk_token": SPECIALS[1], "bos_token": SPECIALS[2], "eos_token": SPECIALS[3]}
ROLES |= {"mask_token": SPECIALS[MASK]}


def write_tokenizer(field: Text) -> LibraryTokenizer | None:
    """Of byte-pair encoding; other kinds have no such file, and their models are asked by ids."""
    values = field.to_json()
    if values["kind"] != "bpe":
        return None
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    numbers = {symbol: number for number, symbol in enumerate(field.symbols)}
    library = Tokenizer(models.BPE(vocab=numbers, merges=[(left, right) for left, right in values["merges"]]))
    words: Any = pre_tokenizers.Split(Regex(UNIT.pattern.replace(r"\Z", r"\z")), "isolated")
    library.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    library.decoder = decoders.ByteLevel()
    if field.lowercase:
        library.normalizer = normalizers.Lowercase()
    library.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIALS])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **ROLES}
    files = {"tokenizer.json": library.to_str().encode(), "tokenizer_config.json": json_bytes(config)}
    return LibraryTokenizer(library, Path("tokenizer.json"), files)
