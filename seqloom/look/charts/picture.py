"""Attention drawn over the picture it went to, word by word: what the model saw while it wrote each word."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..measures.attention import AttentionMap, Picture
from ..names import format_token
from .base import import_altair, make_data, make_title, round_number
from .maps import name_maps, pick_map

if TYPE_CHECKING:
    import altair as alt

SHADE = 0.88  # how dark a place is that is not looked at
PANEL = 132  # pixels, the longer side of one picture
WORDS = 24  # pictures, at most


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """A picture as a PNG file: gray, or the first three channels as red, green and blue."""
    height, width, channels = pixels.shape
    kept = np.ascontiguousarray(pixels[..., : 3 if channels >= 3 else 1])
    rows = b"".join(b"\0" + row.tobytes() for row in kept)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels >= 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND")


def _chunk(kind: bytes, content: bytes = b"") -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def make_picture_url(picture: Picture) -> str:
    return f"data:image/png;base64,{b64encode(encode_png(picture.pixels)).decode()}"


def picture_chart(attention: AttentionMap) -> "alt.FacetChart":
    """A picture for each word: bright where it attends, dark where not. One map can be picked; at first the mean."""
    alt = import_altair()
    assert attention.picture is not None, "there is no picture to draw on"
    pixels = attention.picture.pixels
    scale = PANEL / max(pixels.shape[:2])
    height, width = (side * scale for side in pixels.shape[:2])
    words = [f"{n + 1}. {format_token(word)}" for n, word in enumerate(attention.target[:WORDS])]
    maps = name_maps(attention)
    base = alt.Chart(make_data(_make_squares(attention.picture, maps, words, scale)))
    ground = (
        base.transform_filter("datum.place == 0")
        .mark_image(url=make_picture_url(attention.picture), width=width, height=height, align="left", baseline="top")
        .encode(x=alt.value(0), y=alt.value(0))
    )
    ground.mark.smooth = scale < 1  # the squares of a small one are to be seen
    shades = base.mark_rect(color="black", stroke=None).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False)),
        x2=alt.X2("right:Q"),
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False)),
        y2=alt.Y2("bottom:Q"),
        opacity=alt.Opacity("shade:Q", scale=None),
        tooltip=["word:N", "place:Q", alt.Tooltip("attention:Q", title="attention weight"), "map:N"],
    )
    chart = pick_map(alt.layer(ground, shades).properties(width=width, height=height), list(maps))
    return (
        chart.facet(facet=alt.Facet("word:N", sort=words, title=None), columns=4)
        .properties(
            title=make_title(
                attention.title, attention.example, "Bright: a large attention weight; each picture has its own scale"
            )
        )
        .resolve_scale(x="shared", y="shared")
    )


def _make_squares(
    picture: Picture, maps: Mapping[str, NDArray[np.float32]], words: Sequence[str], scale: float
) -> list[dict[str, Any]]:
    """The squares of every word and map, each with its corners in pixels and how dark it is."""
    (height, width), (down, across) = picture.pixels.shape[:2], picture.grid
    corners = [
        {"x": x * scale, "y": y * scale, "right": min(x + picture.patch, width) * scale}
        | {"bottom": min(y + picture.patch, height) * scale}
        for y in range(0, down * picture.patch, picture.patch)
        for x in range(0, across * picture.patch, picture.patch)
    ]
    return [
        {"word": word, "map": name, "place": place, "attention": round_number(float(weight)), **corner}
        | {"shade": round_number(SHADE * (1 - float(weight) / max(float(weights[n].max()), 1e-9)))}
        for name, weights in maps.items()
        for n, word in enumerate(words)
        for place, (weight, corner) in enumerate(zip(weights[n], corners, strict=False))
    ]
