"""What every chart of a test stands on."""

import pytest

from seqloom.look import measuring


@pytest.fixture(autouse=True)
def _short_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever draws all views measures the cost of every kind: here of short sequences, which take as many steps."""
    monkeypatch.setattr(measuring.measure_costs, "__defaults__", ((4, 8),))
