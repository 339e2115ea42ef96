"""All certificates there are, in an order that does not change from run to run."""

from collections.abc import Iterator
from itertools import chain

from . import (
    check_attention_facts,
    check_cell_facts,
    check_cells,
    check_heads,
    check_layers,
    check_receptive_fields,
    check_torch,
)
from .certificate import Certificate, Check

SOURCES = (
    check_cells,
    check_layers,
    check_heads,
    check_torch,
    check_cell_facts,
    check_attention_facts,
    check_receptive_fields,
)
FAMILIES = ("cells", "attention", "transformer", "heads")


def list_checks() -> list[Check]:
    """Family by family; within one: equations first, then PyTorch's numbers, then what was derived on paper."""
    checks = chain.from_iterable(source.checks() for source in SOURCES)
    return sorted(checks, key=lambda check: FAMILIES.index(check.family))


def measure_certificates() -> Iterator[Certificate]:
    """Measure all checks, one after the other."""
    for check in list_checks():
        yield check.certify()
