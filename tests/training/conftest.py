"""Tests of files wait for no disk: what syncing promises is tested by its order, not by its slowness."""

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", os.fstat)  # which, like it, fails for what is not open
