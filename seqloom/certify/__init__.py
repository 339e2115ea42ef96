"""Certificates: what the layers compute, held against equations typed from the papers, PyTorch, and facts on paper."""

from .certificate import Certificate as Certificate
from .certificate import Check as Check
from .checks import list_checks as list_checks
from .checks import measure_certificates as measure_certificates
