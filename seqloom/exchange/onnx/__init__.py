"""Runs as ONNX graphs, which other programs can run: `save(run, folder)`."""

from .folder import save as save
