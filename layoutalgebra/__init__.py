"""The layout algebra: pure mathematics, no files, no processes, no x86."""

from layout_advise.layoutalgebra.terms import A, S
from layout_advise.layoutalgebra.text import parse

__all__ = ["A", "S", "parse"]
