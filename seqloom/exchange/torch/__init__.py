"""Runs as plain PyTorch, without this package: `save(run, folder)`."""

from .folder import save as save
