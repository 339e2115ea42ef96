"""Tensors in files: what is written comes back, what is not plain finite data is refused."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seqloom.errors import RunError
from seqloom.training.tensors import copy_weights, load_weights, read_tensors, tensor_bytes

from .tiny import Guesser, same

SOME = {
    "a": torch.arange(6, dtype=torch.float32).view(2, 3),
    "b.c": torch.tensor([1, 2, 3]),
    "empty": torch.zeros(0, 4),
    "one": torch.tensor(2.5, dtype=torch.float64),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "half": torch.tensor([1.5], dtype=torch.bfloat16),
}


def file_of(header: Any, content: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + content


def entry(begin: int, end: int, dtype: str = "F32", shape: tuple[int, ...] = (1,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.pkl", b"\x80\x02.")
    return file.getvalue()


def test_tensors_come_back_to_the_bit_and_the_same_ones_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(tensor_bytes(SOME))
    found = read_tensors(tmp_path / "file")
    assert same(found, SOME) and all(found[name].dtype == SOME[name].dtype for name in SOME)
    assert tensor_bytes(dict(reversed(found.items()))) == tensor_bytes(SOME)


def test_a_transposed_tensor_is_written_as_it_looks(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(tensor_bytes({"a": SOME["a"].T}))
    assert torch.equal(read_tensors(tmp_path / "file")["a"], SOME["a"].T)


FOUR = b"\0\0\x80\x3f"  # 1.0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut short"),
        (b"1234567", "cut short"),
        (b"just some text that is no tensor", "not a safetensors file"),
        (zipped(), "pickle or zip"),
        (b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x02os\x94.", "pickle or zip"),
        (file_of({"a": entry(0, 4)}, FOUR, length=2**63), "not a safetensors file"),
        (file_of({"a": entry(0, 4)}, FOUR, length=2**40), "not a safetensors file"),
        (file_of(b'{"a": %b, "a": %b}' % ((json.dumps(entry(0, 4)).encode(),) * 2), FOUR), "twice"),
        (file_of({"a": entry(0, 4)}, b"\0\0\xc0\x7f"), "not finite"),
        (file_of({"a": entry(0, 4)}, b"\0\0\x80\xff"), "not finite"),
        (file_of({"a": entry(0, 2, "F16")}, b"\0\x7c"), "not finite"),
        (file_of({"a": entry(0, 2, "BF16")}, b"\xc0\x7f"), "not finite"),
        (file_of({"a": entry(0, 8, "F64")}, b"\0" * 6 + b"\xf0\x7f"), "not finite"),
        (file_of({"a": entry(0, 4), "b": entry(0, 4)}, FOUR), "not a whole"),
        (file_of({"a": entry(0, 4), "b": entry(2, 6)}, FOUR + FOUR), "not a whole"),
        (file_of({"a": entry(0, 4)}, FOUR[:3]), "not a whole"),
        (file_of({"a": entry(0, 4)}, FOUR + zipped()), "not a whole"),
        (file_of({"a": entry(0, 4, shape=(2**40, 2**40))}, FOUR), "not a whole"),
        (file_of({"a": entry(0, 4, shape=(-1,))}, FOUR), "not a whole"),
        (file_of({"a": entry(4, 0)}, FOUR), "not a whole"),
        (file_of({"a": entry(0, 1, "F8_E4M3")}, b"\x7f"), "not supported"),
        (file_of({"a": entry(0, 4, "os.system")}, FOUR), "not supported"),
        (file_of({"a": [1]}), "not supported"),
        (file_of({"a": {"dtype": ["F32"]}}), "not supported"),
        (file_of([]), "an object was expected"),
        (file_of(b"{" * 10), "not valid JSON"),
        (file_of(b'{"a":' * 50_000), "nested too deeply"),
    ],
)
def test_a_file_that_is_not_plain_tensors_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "some.safetensors").write_bytes(content)
    with pytest.raises(RunError) as error:
        read_tensors(tmp_path / "some.safetensors")
    assert "some.safetensors" in str(error.value) and reason in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


@settings(max_examples=300)
@given(st.data())
def test_a_mutated_file_gives_finite_tensors_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(tensor_bytes(SOME))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.getbasetemp() / "mutated.safetensors"
    path.write_bytes(content)
    try:
        found = read_tensors(path)
    except RunError as error:
        assert str(path) in str(error)
    else:
        assert all(torch.isfinite(tensor).all() for tensor in found.values())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.tell = nn.Embedding(3, 2), nn.Linear(2, 3)
        self.tell.weight = self.embed.weight
        self.register_buffer("count", torch.tensor(7))


def test_tied_weights_are_kept_once_and_stay_tied() -> None:
    one, other = Tied(), Tied()
    weights = copy_weights(one)
    assert set(weights) == {"embed.weight", "tell.bias", "count"}
    tensor_bytes(weights)
    load_weights(other, weights, "here")
    assert other.tell.weight is other.embed.weight
    assert same(copy_weights(other), weights)


def test_weights_are_a_copy() -> None:
    module = Guesser()
    weights = copy_weights(module)
    with torch.no_grad():
        module.tell.bias += 1
    assert not torch.equal(weights["tell.bias"], module.tell.bias)


def altered(name: str, tensor: Tensor | None) -> dict[str, Tensor]:
    weights = {**copy_weights(Guesser(seed=1)), name: tensor}
    return {each: value for each, value in weights.items() if value is not None}


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (altered("tell.bias", None), "'tell.bias' is missing"),
        (altered("tell.more", torch.zeros(1)), "'tell.more', which this model does not have"),
        (altered("tell.bias", torch.zeros(5)), "is 5 (float32), but this model's recipe makes it 12 (float32)"),
        (altered("tell.bias", torch.zeros(12, dtype=torch.float64)), "is 12 (float64)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_and_none_is_changed(weights: dict[str, Tensor], reason: str) -> None:
    module = Guesser(seed=0)
    before = copy_weights(module)
    with pytest.raises(RunError) as error:
        load_weights(module, weights, "model.safetensors")
    assert str(error.value).startswith("model.safetensors: ") and reason in str(error.value)
    assert same(copy_weights(module), before)
