"""Charts of measures, on Altair."""

from .base import save as save
