"""IDX files (MNIST and its kin) to arrays: four bytes of magic, the sizes, then the numbers, the largest byte first.

The header is compared with what the file holds before anything is allocated.
"""

import math

import numpy as np
import numpy.typing as npt

from seqloom.counts import format_count
from seqloom.data.formats.lines import check_file, read_bytes
from seqloom.errors import DataError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMENSIONS = 8
BEST_PACKING = 1040  # gzip makes nothing smaller than by this factor


def read_idx(file: str) -> npt.NDArray[np.generic]:
    """The array of a file, in this machine's byte order."""
    start = read_bytes(file, 4 + 4 * MOST_DIMENSIONS)
    if len(start) < 4 or start[0] or start[1] or start[2] not in TYPES:
        raise DataError(
            f"an IDX file begins with 00 00, a type and a count, this one with {start[:4].hex(' ')!r}", file
        )
    dimensions = start[3]
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise DataError(
            f"the header says {format_count(dimensions, 'dimension')}, but 1 to {MOST_DIMENSIONS} were expected", file
        )
    head = 4 + 4 * dimensions
    if len(start) < head:
        raise DataError("the file ends within its header", file)
    shape = np.frombuffer(start, ">u4", dimensions, 4).tolist()
    kind = np.dtype(TYPES[start[2]])
    expected = head + math.prod(shape) * kind.itemsize
    size = check_file(file).stat().st_size
    packed = file.lower().endswith(".gz")
    if expected > size * (BEST_PACKING if packed else 1):
        raise DataError(_describe_mismatch(shape, expected, f"the file has {size:,}"), file)
    content = read_bytes(file, expected + 1)
    if len(content) != expected:
        raise DataError(
            _describe_mismatch(
                shape, expected, "it has more" if len(content) > expected else f"it has {len(content):,}"
            ),
            file,
        )
    array = np.frombuffer(content, kind, offset=head).reshape(shape)
    return array.astype(kind.newbyteorder("="))


def read_labeled(images: str, labels: str) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Arrays that belong together: as many labels, in one dimension, as there are images."""
    arrays, classes = read_idx(images), read_idx(labels)
    if classes.ndim != 1:
        raise DataError(f"labels have one dimension, but the file has {classes.ndim}", labels)
    if len(arrays) != len(classes):
        raise DataError(
            f"the file has {format_count(len(classes), 'label')}, but {images} has {format_count(len(arrays), 'item')}",
            labels,
        )
    return arrays, classes


def _describe_mismatch(shape: list[int], expected: int, actual: str) -> str:
    return f"the header says {' × '.join(map(str, shape))}, which takes {expected:,} bytes, but {actual}"
