"""Folders of BERT, DistilBERT, RoBERTa, GPT-2 and Marian: read into our layers, and written for transformers."""

from .folder import PRESETS as PRESETS
from .folder import change_head as change_head
from .folder import create as create
from .folder import load as load
from .folder import save as save
from .model import PretrainedModel as PretrainedModel
