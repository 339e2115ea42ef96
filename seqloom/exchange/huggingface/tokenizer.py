"""The tokenizer of a folder: tokenizer.json or the files that came before it, read by the library `tokenizers`.

That library runs nothing from a file, but a file can make it panic: nothing of it is called outside of `guarded`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import RunError
from ...training.files import parse_json, read_bytes
from .sentencepiece import MarianTokenizer, refuse_panics
from .weights import refuse_link

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

LARGEST = 64 << 20  # bytes of a file
FILES = (  # what belongs to a tokenizer, and goes with it when a model is saved
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "source.spm",
    "target.spm",
    "target_vocab.json",
)
UNREAD = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "bpe.codes")
SPECIAL = {  # what each token is called where the files do not say
    "bert": {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"},
    "gpt2": {"unk": "<|endoftext|>", "bos": "<|endoftext|>", "eos": "<|endoftext|>"},
    "roberta": {
        "bos": "<s>",
        "eos": "</s>",
        "sep": "</s>",
        "cls": "<s>",
        "unk": "<unk>",
        "pad": "<pad>",
        "mask": "<mask>",
    },
    "marian": {"eos": "</s>", "unk": "<unk>"},
}


class LibraryTokenizer:
    """From text to ids, with what the model expects around them, and back."""

    def __init__(self, library: "Library", place: Path, files: dict[str, bytes]) -> None:
        self.library, self.place, self.files = library, place, files
        with refuse_panics(place):
            library.no_truncation()
            library.no_padding()
            # The special tokens around a text have ids of their own, which the vocabulary need not know.
            ids = [*library.get_vocab(with_added_tokens=True).values(), *library.encode("").ids]
        self.largest_id = max(ids, default=-1)

    def encode(self, text: str) -> list[int]:
        with refuse_panics(self.place):
            return list(self.library.encode(text).ids)

    def encode_pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """The ids of two texts, and which of the two each belongs to: the segments."""
        with refuse_panics(self.place):
            encoding = self.library.encode(first, second)
            return list(encoding.ids), list(encoding.type_ids)

    def encode_many(self, texts: Sequence[str], special: bool = True) -> list[list[int]]:
        """The ids of each text, with what the model expects around them unless that is not wanted."""
        whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # half a surrogate pair is no text
        with refuse_panics(self.place):
            encodings = self.library.encode_batch(whole, add_special_tokens=special)
            return [list(encoding.ids) for encoding in encodings]

    def find_id(self, token: str) -> int | None:
        """The id of a token, such as "[MASK]"."""
        with refuse_panics(self.place):
            number: int | None = self.library.token_to_id(token)
            return number

    def list_tokens(self) -> dict[str, int]:
        """Every token with its id."""
        with refuse_panics(self.place):
            return dict(self.library.get_vocab(with_added_tokens=True))

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of these ids, without the special tokens unless they are asked for."""
        with refuse_panics(self.place):
            return str(self.library.decode(list(ids), skip_special_tokens=not special))


FolderTokenizer = LibraryTokenizer | MarianTokenizer


def read_tokenizer(folder: Path, family: str) -> FolderTokenizer | None:
    """The tokenizer of the folder, if it has one."""
    for name in FILES:
        if (folder / name).is_symlink():
            refuse_link(folder / name)
    files = {name: read_bytes(folder / name, LARGEST) for name in FILES if (folder / name).exists()}
    if (tokenizer := build_tokenizer(files, family, folder)) is not None:
        return tokenizer
    for name in UNREAD:
        if (folder / name).exists():
            raise RunError(f"{folder / name}: is a tokenizer that is not read here; tokenizer.json is")
    return None


def build_tokenizer(files: dict[str, bytes], family: str, folder: Path) -> FolderTokenizer | None:
    """The tokenizer that these files of a folder say, if they say one."""
    readers: dict[str, Callable[[], Library]] = {
        "tokenizer.json": lambda: read_whole(files["tokenizer.json"], folder / "tokenizer.json"),
        "vocab.txt": lambda: read_wordpieces(files["vocab.txt"], folder, read_options(files, folder, "bert")),
        "merges.txt": lambda: read_byte_pairs(files, folder, family, read_options(files, folder, family)),
    }
    for name, read in readers.items():
        if name in files:
            with refuse_panics(folder / name):
                library = read()
            return LibraryTokenizer(library, folder / name, files)
    if "source.spm" in files:
        return MarianTokenizer(files, folder)
    return None


def name_special(files: dict[str, bytes], family: str) -> dict[str, str]:
    """What the special tokens are called, by what they are for."""
    kin = "bert" if family == "distilbert" else family
    special: dict[str, str] = read_options(files, Path("the tokenizer"), kin)["special"]
    return special


def read_whole(data: bytes, place: Path) -> "Library":
    from tokenizers import Tokenizer

    parse_json(data, str(place))  # no key twice, no endless nesting
    return Tokenizer.from_str(data.decode())


# --- what came before tokenizer.json --------------------------------------------------------------------------


def read_options(files: dict[str, bytes], folder: Path, family: str) -> dict[str, Any]:
    """What the files beside a vocabulary say, and in `special` what they call the special tokens."""
    options: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        options |= parse_json(files[name], str(folder / name)) if name in files else {}
    special, stripped = dict(SPECIAL.get(family, {})), []
    for name in special:
        token = options.get(f"{name}_token")
        if isinstance(token, dict):
            stripped += [token.get("content")] if token.get("lstrip") is True else []
            token = token.get("content")
        special[name] = token if isinstance(token, str) else special[name]
    return {**options, "special": special, "stripped": stripped}


def read_wordpieces(data: bytes, folder: Path, options: dict[str, Any]) -> "Library":
    """BERT's vocab.txt: a piece a line."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    lines = data.decode().split("\n")
    pieces = [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
    vocabulary, special = {piece: number for number, piece in enumerate(pieces)}, options["special"]
    if len(vocabulary) < len(pieces):
        raise RunError(f"{folder / 'vocab.txt'}: has a piece twice")
    require_tokens(vocabulary, [special["unk"], special["cls"], special["sep"]], folder / "vocab.txt")
    library = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk"]))
    library.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=bool(options.get("tokenize_chinese_chars", True)),
        strip_accents=options.get("strip_accents"),
        lowercase=bool(options.get("do_lower_case", True)),
    )
    library.pre_tokenizer, library.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece(prefix="##")
    before, after = special["cls"], special["sep"]
    library.post_processor = processors.TemplateProcessing(
        single=f"{before}:0 $A:0 {after}:0",
        pair=f"{before}:0 $A:0 {after}:0 $B:1 {after}:1",
        special_tokens=[(before, vocabulary[before]), (after, vocabulary[after])],
    )
    return add_special_tokens(library, options, vocabulary)


def read_byte_pairs(files: dict[str, bytes], folder: Path, family: str, options: dict[str, Any]) -> "Library":
    """GPT-2's and RoBERTa's vocab.json and merges.txt."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    if "vocab.json" not in files:
        raise RunError(f"{folder}: has a merges.txt, but no vocab.json")
    vocabulary, special = parse_json(files["vocab.json"], str(folder / "vocab.json")), options["special"]
    lines = [line for line in files["merges.txt"].decode().splitlines() if line and not line.startswith("#version")]
    merges = [(one, other) for one, _, other in (line.partition(" ") for line in lines)]
    space = bool(options.get("add_prefix_space", False))
    library = Tokenizer(models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix=""))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    library.decoder = decoders.ByteLevel()
    if family == "roberta":
        require_tokens(vocabulary, [special["sep"], special["cls"]], folder / "vocab.json")
        after, before = ((special[name], vocabulary[special[name]]) for name in ("sep", "cls"))
        library.post_processor = processors.RobertaProcessing(after, before, True, space)
    return add_special_tokens(library, options, vocabulary)


def require_tokens(vocabulary: dict[str, int], tokens: Sequence[str], place: Path) -> None:
    for token in tokens:
        if token not in vocabulary:
            raise RunError(f"{place}: has no {token!r:.80}, which is needed")


def add_special_tokens(library: "Library", options: dict[str, Any], vocabulary: dict[str, int]) -> "Library":
    """Special tokens are found whole in a text; some take the blank before them, such as RoBERTa's mask."""
    from tokenizers import AddedToken

    known, stripped = dict.fromkeys(options["special"].values()), options["stripped"]
    library.add_special_tokens(
        [AddedToken(one, lstrip=one in stripped, normalized=False, special=True) for one in known if one in vocabulary]
    )
    return library
