"""A run as one page that needs nothing else: no server, no network, no installation."""

from .save import pack

__all__ = ["pack"]
