"""The layout algebra: pure mathematics, no files, no processes, no x86."""

# derive and explore are both modules and the functions in them: importing here, once, binds the names to the functions
from layout_advise.layoutalgebra.derive import derive
from layout_advise.layoutalgebra.explore import explore
from layout_advise.layoutalgebra.terms import A, S
from layout_advise.layoutalgebra.text import parse

__all__ = ["A", "S", "derive", "explore", "parse"]
