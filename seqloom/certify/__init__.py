"""Certificates: what the layers compute, held against equations typed from the papers, PyTorch, and facts on paper."""

from .certificate import Certificate as Certificate
from .certificate import Check as Check
from .checks import all_certificates as all_certificates
from .checks import all_checks as all_checks
