"""The examples that ``accuracy.py`` measures: sizes, hand-written versions, and which candidate corresponds to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layout_advise.reports.model.candidate import CandidateReport

Match = Callable[[CandidateReport], bool]


def has(*families: str, block: int | None = None, without: tuple[str, ...] = (), structures: int | None = None) -> Match:
    """A candidate that does all of ``families`` (and none of ``without``), on that many structures. It merges arrays where
    ``merge`` is among the families, and only there."""

    def match(candidate: CandidateReport) -> bool:
        return (
            set(families) <= set(candidate.families)
            and not set(without) & set(candidate.families)
            and ("merge" in families) == ("merge" in candidate.families)
            and (block is None or candidate.block == block)
            and (structures is None or len(candidate.structures) == structures)
        )

    return match


@dataclass(frozen=True)
class Example:
    """``sizes``: name to arguments. ``versions``: hand-written version to the candidates that it corresponds to.
    ``threads``: the numbers of OpenMP threads that it is measured with; none: it has no threads of its own. ``places``: the
    versions are timed with their code at several places at all sizes, as the candidates are where branches hang on data; at
    the small ones, which the L2 holds, all are. ``regions``: the sections that are studied beside each other, where times
    are those of several together; none: the tool chooses one."""

    sizes: dict[str, tuple[str, ...]]
    versions: dict[str, Match]
    threads: tuple[int, ...] = ()
    places: bool = False
    regions: tuple[str, ...] = ()


def hot_split(candidate: CandidateReport) -> bool:
    """The used fields in a structure of their own, kept together."""
    return "split" in candidate.families and len(candidate.arrays) == 1 and candidate.derivation[-1:] == ("7",)


def grouped(*groups: str) -> Match:
    """The used fields in structures of their own, these together (space between names), and none in blocks."""
    wanted = {frozenset(group.split()) for group in groups}

    def match(candidate: CandidateReport) -> bool:
        plain = "split" in candidate.families and "aosoa" not in candidate.families
        return plain and {frozenset(names) for names in candidate.arrays} == wanted

    return match


def converted(candidate: CandidateReport) -> bool:
    """Layouts that change between the regions: it is the plan that corresponds to it, and no candidate."""
    return False


def view(candidate: CandidateReport) -> bool:
    """What is read copied in at each call, and what is written copied back."""
    return candidate.temporary


def by_class(candidate: CandidateReport) -> bool:
    """One of each two neighbours stored with its like, in all structures together."""
    joint = len(candidate.structures) == 3 and "split" in candidate.families
    return joint and all(term.startswith("S_{0;2} ⊗") for term in candidate.layout.values())


def elements_last(candidate: CandidateReport) -> bool:
    """An array for each number of the element, in all structures together."""
    factors = [int(f.removeprefix("A_")) for f in candidate.layout.get("s0", "").split(" ⊗ ") if f.startswith("A_")]
    joint = "soa" in candidate.families and len(candidate.structures) == 3
    return joint and bool(factors) and factors[-1] == max(factors)


# Only versions whose layout the tool also proposes are compared; the others (particles_aosoa and wave_parity keep unused
# fields inside, daxpy_joint puts two arrays a fixed distance apart, nbody_lanes changes the loop, lbm_rows exchanges cells
# and directions of a row only, list_array is another data structure) are measured by hand alone, to see that no advice is
# missed.
NOT_PROPOSED = has("none")
VARIANTS = {
    "kmeans_aosoa": "lanes",
    "kmeans_vectors": "simd",
    "kmeans_quads": "simd",
    "imaging_simd": "simd",
    "sampo_simd": "simd",
    "wave_restrict": "restrict",
    "lattice_pairs": "restrict",
    "entities_restrict": "restrict",
    "lbm_restrict": "restrict",
    "lbm_split": "restrict",
}
"""Versions with loops over the elements of a block inside, in vector types or with `restrict`, and what corresponds to
them; of all others it is the plain variant."""


def is_wide(flags: str) -> bool:
    """Whether a set of flags (``O3-haswell``, ``clang-O2``) allows registers of more than 16 bytes."""
    return "O3" in flags


WIDER_THAN_SSE = frozenset(("kmeans_vectors",))
"""Versions in vectors of 32 bytes. Where registers have 16, compilers take them apart in their own ways (gcc -O2 lane by
lane); mock-ups are written in vectors that fill a register, as `kmeans_quads` is."""
CASES: dict[str, Example] = {
    "particles": Example(
        {"small": ("5000", "2000"), "medium": ("100000", "600"), "large": ("1300000", "60")},
        {"particles_soa": has("soa"), "particles_split": hot_split, "particles_aosoa": has("aosoa", without=("compact",))},
    ),
    "wave": Example(
        {"small": ("80", "2000"), "medium": ("400", "400"), "large": ("1000", "100")},
        {
            "wave_soa": has("soa", without=("split",)),
            "wave_fields": has("soa", "split"),
            "wave_parity": has("split", without=("compact",)),
            "wave_restrict": has("soa", without=("split",)),
        },
    ),
    "wave_omp": Example(
        {"medium": ("256", "400"), "large": ("512", "200")},
        {
            "wave_omp_soa": has("soa", without=("split",)),
            "wave_omp_fields": has("soa", "split"),
            "wave_omp_parity": has("split", without=("compact",)),
        },
        threads=(1, 2),
    ),
    "lattice": Example(
        {"small": ("6", "4000"), "large": ("20", "200")},
        {
            "lattice_compact": by_class,
            "lattice_soa": elements_last,
            "lattice_aosoa": NOT_PROPOSED,
            "lattice_pairs": has("soa", "split", structures=3),
        },
    ),
    "graph": Example(
        {"small": ("4000", "2000"), "large": ("400000", "60")},
        {
            "graph_split": grouped("rank share", "next"),
            "graph_hot": hot_split,
            "graph_soa": has("soa", without=("split",), structures=1),
        },
    ),
    "scan": Example(
        {"small": ("8000", "2000"), "large": ("1000000", "60")},
        {
            "scan_columns": has("soa", without=("split",)),
            "scan_hot": hot_split,
            "scan_split": grouped("date quantity", "price discount"),
            "scan_blocks": has("aosoa", block=8),
        },
        places=True,
    ),
    "daxpy": Example(
        {"small": ("16000", "4000"), "large": ("4000000", "100")},
        {
            "daxpy_aos": has("merge", without=("aosoa",)),
            "daxpy_aosoa": has("merge", "aosoa"),
            "daxpy_joint": NOT_PROPOSED,
        },
    ),
    "pixels": Example(
        {"small": ("20000", "800"), "large": ("3000000", "40")},
        {
            "pixels_soa": has("soa", without=("split",)),
            "pixels_aosoa": has("aosoa", block=8),
            "pixels_pairs": grouped("r g", "b a"),
        },
    ),
    "kmeans": Example(
        {"small": ("10000", "200"), "large": ("100000", "40")},
        {
            "kmeans_soa": has("soa", without=("split",)),
            "kmeans_aosoa": has("aosoa", block=8),
            "kmeans_vectors": has("aosoa", block=8),
            "kmeans_quads": has("aosoa", block=4),
            "kmeans_split": grouped("x", "label distance"),
        },
    ),
    "nbody": Example(
        {"small": ("10000", "100"), "large": ("60000", "40")},
        {"nbody_soa": has("soa", without=("split",)), "nbody_hot": hot_split, "nbody_lanes": NOT_PROPOSED},
    ),
    "sph": Example(
        {"small": ("1400", "1000"), "large": ("60000", "40")},
        {"sph_hot": grouped("x m", "rho"), "sph_soa": has("soa", without=("split",)), "sph_view": view},
    ),
    "drift": Example(
        {"small": ("3000", "2000"), "large": ("400000", "60")},
        {
            "drift_soa": has("soa", without=("split",)),
            "drift_hot": hot_split,
            "drift_aosoa": has("aosoa", block=4),
            "drift_view": view,
        },
    ),
    "stencil": Example(
        {"small": ("140", "1500"), "large": ("600", "300")},
        {
            "stencil_aos": has("merge", without=("aosoa",)),
            "stencil_padded": has("pad"),
            "stencil_transposed": has("permute"),
        },
    ),
    "list": Example(
        {"small": ("6000", "1000"), "large": ("100000", "40")},
        {
            "list_array": NOT_PROPOSED,
            "list_columns": NOT_PROPOSED,
            "list_hot": has("split", without=("aosoa",)),
            "list_sorted": NOT_PROPOSED,
        },
    ),
    "options": Example(
        {"small": ("5000", "400"), "large": ("100000", "30")},
        {
            "options_soa": has("soa", without=("split",)),
            "options_hot": hot_split,
            "options_split": grouped("spot strike years rate volatility", "call put"),
        },
    ),
    "entities": Example(
        {"small": ("4000", "1500"), "large": ("300000", "60")},
        {
            "entities_soa": has("soa", without=("split",)),
            "entities_arrays": has("soa", without=("split",)),
            "entities_aosoa": has("aosoa", block=4),
            "entities_hot": hot_split,
            "entities_split": grouped("flags", "position velocity"),
            "entities_restrict": has("soa", without=("split",)),
        },
        places=True,
    ),
    "lbm": Example(
        {"small": ("56", "1000"), "large": ("600", "60")},
        {
            "lbm_soa": has("soa", without=("split",), structures=2),
            "lbm_restrict": has("soa", without=("split",), structures=2),
            "lbm_aosoa": has("aosoa", block=8, structures=2),
            "lbm_rows": NOT_PROPOSED,
            "lbm_split": grouped("[0] [1] [2] [3] [4]", "[5] [6] [7] [8]"),
        },
    ),
    "imaging": Example(
        {"small": ("26", "300"), "large": ("128", "12")},
        {
            "imaging_soa": has("soa", without=("split",)),
            "imaging_simd": has("soa", without=("split",)),
            "imaging_split": grouped("raw smooth edge next", "outline speed"),
            "imaging_blocks": has("aosoa", block=16, without=("split",)),
        },
        regions=("diffuse", "edges", "bend", "evolve", "measure"),
    ),
    "kmeans32": Example(
        {"small": ("3000", "40"), "large": ("1048576", "3")},
        {
            "kmeans32_soa": has("permute", without=("split",)),
            "kmeans32_blocks": has("aosoa", block=16, without=("split",)),
            "kmeans32_turned": converted,
        },
        regions=("spread", "assign"),
    ),
    "sampo": Example(
        {"small": ("8000", "100"), "large": ("1000000", "80")},
        {
            "sampo_soa": has("soa", without=("split",)),
            "sampo_simd": has("soa", without=("split",)),
            "sampo_split": grouped("state age", "x y energy eggs wait host", "sex origin dose genes"),
            "sampo_tiles": has("aosoa", "split", block=16),
        },
        regions=("grow", "forage", "census"),
    ),
}
