"""Images with captions: from a folder, from contact sheets, and from people who mean harm."""

import io
import struct
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seqloom.data.formats.images import CaptionedImage, ImageReading, read_captioned, read_sheets
from seqloom.data.formats.tables import SkippedRows
from seqloom.errors import DataError, MissingExtra


def save(path, array) -> None:
    Image.fromarray(np.asarray(array, np.uint8)).save(path)


def read(folder, *, skipped: SkippedRows | None = None, table: str = "t.tsv", **how) -> list[CaptionedImage]:
    return list(read_captioned(str(folder / table), str(folder), ImageReading(**how), skipped or SkippedRows()))


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def test_images_come_with_all_their_captions_in_the_order_of_the_table(tmp_path):
    first, second = noise(4, 5), noise(4, 5, 1)
    save(tmp_path / "a.png", first)
    save(tmp_path / "b.png", second)
    (tmp_path / "t.tsv").write_text("image\tcaption\nb.png\ta dog\na.png\ta cat\nb.png\ttwo dogs\n")
    found = read(tmp_path, size=(4, 5))
    assert [(item.name, item.captions, item.line) for item in found] == [
        ("b.png", ("a dog", "two dogs"), 2),
        ("a.png", ("a cat",), 3),
    ]
    np.testing.assert_array_equal(found[0].image, second)
    assert found[1].image.dtype == np.uint8


def test_tables_without_a_header_and_with_numbered_captions(tmp_path):
    save(tmp_path / "a.png", noise(4, 4))
    (tmp_path / "t.tsv").write_text("a.png#0\tone\na.png#1\ttwo\n")
    [item] = read(tmp_path, image="1", caption="2", size=(4, 4))
    assert item.name == "a.png" and item.captions == ("one", "two")


def test_images_are_cut_around_the_middle_and_resized(tmp_path):
    wide = np.zeros((8, 64, 3), np.uint8)
    wide[:, 20:44] = 200  # the middle, and what the filter looks at beside it
    save(tmp_path / "a.png", wide)
    (tmp_path / "t.tsv").write_text("image\tcaption\na.png\tx\n")
    [item] = read(tmp_path, size=(4, 4))
    assert item.image.shape == (4, 4, 3) and (item.image == 200).all()


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA"])
def test_every_kind_of_color_becomes_three(tmp_path, mode):
    Image.fromarray(noise(6, 6)).convert(mode).save(tmp_path / "a.png")
    (tmp_path / "t.tsv").write_text("image\tcaption\na.png\tx\n")
    assert read(tmp_path, size=(6, 6))[0].image.shape == (6, 6, 3)


def bomb() -> bytes:
    """A PNG of a few bytes that says it is 60,000 pixels wide and high."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def large() -> bytes:
    """As above, but small enough that Pillow itself would only warn."""
    return bomb().replace(struct.pack(">II", 60000, 60000), struct.pack(">II", 9000, 9000))


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("no.png", None, "line 2: there is no image 'no.png'"),
        ("../a.png", b"", "line 2: the name '../a.png' leads out of the folder"),
        ("/etc/passwd", None, "leads out of the folder"),
        ("link.png", None, "leads out of the folder"),
        ("a.png", b"not an image", "line 2: 'a.png' cannot be read as an image"),
        ("a.png", b"", "cannot be read as an image"),
        ("a.png", bomb(), "cannot be read as an image"),
        ("a.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot be read as an image"),
    ],
)
def test_refusals(tmp_path, name, content, part):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "link.png").symlink_to("/etc/hostname")
    if content is not None:
        (folder / name).write_bytes(content)
    (folder / "t.tsv").write_text(f"image\tcaption\n{name}\tx\n")
    with pytest.raises(DataError) as caught:
        read(folder)
    assert part in str(caught.value) and "\n" not in str(caught.value)


def test_an_image_that_is_larger_than_any_camera_s_is_not_opened(tmp_path):
    raw = large()
    head = raw[12:29]
    (tmp_path / "a.png").write_bytes(raw[:29] + struct.pack(">I", zlib.crc32(head)) + raw[33:])
    (tmp_path / "t.tsv").write_text("image\tcaption\na.png\tx\n")
    with pytest.raises(DataError, match="9000 × 9000 pixels, more than 50,000,000"):
        read(tmp_path)


def test_bad_images_can_be_skipped(tmp_path):
    save(tmp_path / "a.png", noise(4, 4))
    (tmp_path / "t.tsv").write_text("image\tcaption\nno.png\tx\na.png\ty\n")
    skipped = SkippedRows()
    assert [item.name for item in read(tmp_path, skip=True, skipped=skipped)] == ["a.png"]
    assert skipped.counts == {"no image": 1}


@given(kind=st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "WEBP"]), place=st.integers(0, 999), byte=st.integers(0, 255))
def test_damaged_images_are_read_or_refused(tmp_path_factory, kind, place, byte):
    folder = tmp_path_factory.mktemp("damaged")
    buffer = io.BytesIO()
    Image.fromarray(noise(12, 12)).save(buffer, kind)
    raw = bytearray(buffer.getvalue())
    raw[place % len(raw)] = byte
    (folder / "a").write_bytes(bytes(raw[: 3 * place + 10]))
    (folder / "t.tsv").write_text("image\tcaption\na\tx\n")
    try:
        assert read(folder)[0].image.shape == (64, 64, 3)
    except DataError as error:
        assert "line 2: 'a' " in str(error)


# --- contact sheets ------------------------------------------------------------------------------------------------


def sheets(folder, index: str, skipped: SkippedRows | None = None, split: str = "", **how) -> list[CaptionedImage]:
    (folder / "i.tsv").write_text("split\tsheet\trow\tcol\timage\n" + index)
    (folder / "c.tsv").write_text("image\tcaption_no\tcaption\na\t0\tone\na\t1\ttwo\nb\t0\tthree\n")
    names = [str(folder / "i.tsv"), str(folder / "c.tsv"), str(folder)]
    return list(read_sheets(*names, 8, ImageReading(size=(8, 8), **how), skipped or SkippedRows(), split))


def test_cells_of_a_sheet(tmp_path):
    sheet = noise(16, 24)
    save(tmp_path / "s.png", sheet)
    index = "train\ts.png\t1\t2\ta\ntest\ts.png\t0\t1\tb\n"
    first, second = sheets(tmp_path, index)
    assert first[1:] == (("one", "two"), "a", 2) and second[1:] == (("three",), "b", 3)
    np.testing.assert_array_equal(first.image, sheet[8:, 16:])
    np.testing.assert_array_equal(second.image, sheet[:8, 8:16])
    assert [item.name for item in sheets(tmp_path, index, split="test")] == ["b"]


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("train\ts.png\t2\t0\ta", "line 2: the cell 2, 0 of 8 pixels lies outside"),
        ("train\ts.png\tx\t0\ta", "line 2: row and col are 'x' and '0'"),
        ("train\tno.png\t0\t0\ta", "line 2: there is no image 'no.png'"),
        ("train\ts.png\t0\t0\tz", "line 2: the image 'z' has no caption"),
    ],
)
def test_refusals_of_cells(tmp_path, row, part):
    save(tmp_path / "s.png", noise(16, 24))
    with pytest.raises(DataError) as caught:
        sheets(tmp_path, row + "\n")
    assert part in str(caught.value)


def test_without_pillow_the_command_is_said(tmp_path, monkeypatch):
    save(tmp_path / "a.png", noise(4, 4))
    (tmp_path / "t.tsv").write_text("image\tcaption\na.png\tx\n")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match="seqloom\\[images\\]"):
        read(tmp_path)


def test_the_real_thumbnails(shared_data):
    folder = shared_data / "flickr8k_64px"
    names = [str(folder / "images.tsv.gz"), str(folder / "captions.tsv.gz"), str(folder)]
    items = list(read_sheets(*names, 64, ImageReading(), SkippedRows(), "dev"))
    assert len(items) == 1000 and all(len(item.captions) == 5 for item in items)
    sheet = np.asarray(Image.open(folder / "dev_00.jpg").convert("RGB"))
    tiles = sheet.reshape(20, 64, 20, 64, 3).swapaxes(1, 2).reshape(400, 64, 64, 3)
    np.testing.assert_array_equal(np.stack([item.image for item in items[:400]]), tiles)
