"""The layout algebra: pure mathematics, no files, no processes, no x86.

In come folded address streams and declared types, out come layout terms, structures and candidate layouts with their
index maps. The rooms build on each other: ``sets/`` (index sets) → ``terms/`` → ``rules/`` (rewriting) and ``derive/``
(terms of streams) → ``explore/`` (candidates) → ``merge/`` (those of several arrays as one); ``draw/`` and ``bridges/`` show
and export them. Usable on its own: ``docs/algebra.md``.
"""

# derive and explore are names of modules too: importing here, once, binds them to the functions
from layout_advise.layoutalgebra.derive.stream_terms import derive
from layout_advise.layoutalgebra.draw.picture import picture
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.terms.term import A, S, Term
from layout_advise.layoutalgebra.terms.text import parse

Term.draw_svg = picture

__all__ = ["A", "S", "derive", "explore", "parse"]
