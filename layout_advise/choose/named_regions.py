"""What the name of a function stands for: itself, or the parallel regions that it starts where its time goes by in them, or
the copies of it that the compiler has specialised."""

from __future__ import annotations

from itertools import takewhile

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import Profiled, Sampled
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.openmp_regions import bodies_started, is_runtime
from layout_advise.tracer.sampling.call_chains import Chain


def named_regions(named: Profiled, main: ElfBinary) -> tuple[Profiled, ...]:
    """The regions to study for the function ``named``, the hottest first.

    Where it does not spend more time by itself than all threads do in the parallel regions that it starts, these, as far as
    any has a good part of the samples. Where its specialised copies (``work.constprop.0``) have more of them than it has,
    these: a function that others may call stays beside its copy, and is never entered. Else itself.
    """
    seen = Sampled.of(named, main)
    if copies := _copies(seen, named):
        return copies
    bodies = [seen.profiled((), named.module, body) for body in bodies_started(named.module, named.function)]

    parallel = [any(seen.inside(chain, body) for body in bodies) for chain in seen.chains]
    itself = (
        not apart and seen.inside(chain, named) and not _waits(chain, seen, named)
        for chain, apart in zip(seen.chains, parallel, strict=True)
    )
    if not bodies or sum(itself) > sum(parallel):
        return (named,)
    hot = [body for body in bodies if body.share >= CHOOSE.least_other_share] or bodies
    return tuple(sorted(hot, key=lambda body: -body.share))


def _copies(seen: Sampled, named: Profiled) -> tuple[Profiled, ...]:
    """The copies of a function in which samples fell, the hottest first, if there are more of them than in itself."""
    if named.function.clone is not None:
        return ()
    functions = (f for f in named.module.functions if f.parent == named.function.name and f.clone in ("isra", "constprop"))
    hot = [one for one in (seen.profiled((), named.module, f) for f in functions) if one.share > 0.0]
    return tuple(sorted(hot, key=lambda one: -one.share)) if sum(one.share for one in hot) > named.share else ()


def _waits(chain: Chain, seen: Sampled, named: Profiled) -> bool:
    """Tells whether a sample fell in the runtime of parallel regions, or in what that had called from ``named``: there one
    thread waits for the others."""
    called = takewhile(lambda address: not seen.inside((address,), named), chain)
    mappings = (seen.modules.mapping_at(address) for address in called)
    return any(mapping is not None and is_runtime(mapping.path) for mapping in mappings)
