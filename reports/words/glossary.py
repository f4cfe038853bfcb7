"""The meaning of the reports' words: the notes on families, variants, evidence and checks."""

from __future__ import annotations

FAMILY_NAMES = {
    "soa": "SoA",
    "aosoa": "AoSoA",
    "split": "split",
    "permute": "permuted",
    "compact": "compact",
    "pad": "padded",
    "reorder": "reordered",
    "gather": "gathered",
    "complex": "complex",
    "merge": "merged",
    "align": "line-aligned",
}

FAMILY_NOTES = {
    "SoA": "structure of arrays: one array per field instead of one array of structures",
    "AoSoA×n": "array of structures of arrays: blocks of n elements, in which the n values of a field lie together",
    "split": "the fields are divided among several arrays of structures; | marks where",
    "compact": "only the fields that the hotspot uses are stored there; the others go to an array of their own",
    "by class": "of each few neighbouring elements the one that a call uses is in a first part, the others in further ones",
    "permuted": "the dimensions of the array are in another order",
    "padded": "elements are filled up to a larger size",
    "reordered": "the fields are in another order",
    "complex": "neighbouring fields, as the two parts of a complex number, stay side by side in the blocks",
    "gathered": "objects that lie anywhere are stored one after another, in the order of pointers or of addresses",
    "merged": "arrays that are used with one index are stored as one array of structures; | marks where another one begins",
    "line-aligned": "arrays as they are, but for their blocks, which begin with a cache line",
}

RULE_NOTES = {
    "1": "cut whole blocks of accessed places off: S becomes S ⊗ A",
    "2": "cut a period off that repeats: S becomes A ⊗ S",
    "3": "cut a stride off: S becomes S ⊗ S",
    "4": "exchange two dimensions: of an array of structures this makes a structure of arrays",
    "5": "cut an array into blocks: A_nm becomes A_n ⊗ A_m",
    "6": "fuse two neighbouring S into one",
    "7": "drop the places that are not accessed",
    "8": "pad to a larger size",
    "9": "divide into two structures, one behind the other",
    "merge": "lay arrays that are used with one index one behind the other, to make one array of structures of them",
    "gather": "store objects that lie anywhere one after another",
    "align": "begin the block with a cache line",
}
"""The rewriting rules of the layout algebra, by number; 1 to 7 as in the paper (Haine, Aumage, Barthou, Euro-Par 2017)."""

VARIANT_NOTES = {
    "plain": "pointers as in the original; what it reads of an element once is read once, as with local variables in the "
    "source: a compiler that cannot tell new arrays apart reads it again after each store",
    "restrict": "the new arrays are declared not to overlap (restrict in C), which a compiler can use",
    "lanes": "as restrict; besides, what an independent loop does for the elements of a block is written as loops over "
    "these, inside of the loops that they share, in plain C",
    "simd": "as restrict; besides, the compiler is told which loops' iterations are independent, as the trace shows",
}

CHECK_NOTES = {
    "between-calls": "calls find what they found in the program where what it writes between them is put back",
    "replayed-batch": "the calls of a batch may find other data than in the program, and take other branches",
    "noise-floor": "the original timed against itself; the intervals of the speedups carry this noise",
    "identity": "the hotspot as lifted C with its layout unchanged; 1.0 means that mock-ups run like the compiled code",
    "placement": "what it costs that a short loop straddles cache lines; -falign-loops=32 may gain it without a new layout",
    "in-situ": "whether times in the snapshot hold in the running program",
    "steady-calls": "whether the call measured is like the calls around it",
    "later-calls": "where data changes as the program runs, other calls may gain another way: --call measures one of them",
    "other-data": "with the data of one call repeated caches may hold what they do not hold in the program",
    "waits": "for files, timers, locks or other machines, which no layout shortens",
    "calm": "calls beside which a fixed loop of additions was slow: something else used the core; they are left out",
    "page-faults": "calls with page faults time the kernel, not the layout",
    "trace-complete": "a layout claimed from a part of the accesses could be wrong for the rest",
    "wrong-map": "the comparison of results was shown to fail where it must",
    "calls-verified": "a layout that is right at one call could be wrong at another",
    "deterministic": "otherwise the calls compared would not be the same",
    "same-blocks": "data that grows or moves as the program runs: --call measures another call",
}

ABLATION_NOTE = (
    "speedup over the original; without SIMD: the compiler kept from using vector instructions; with SIMD: the fastest "
    "build, in which loops with independent iterations may be marked as such; loop: what the unchanged layout "
    "gains when it is rebuilt without SIMD, layout: what the new layout gains over that, SIMD: what it adds then; where a "
    "layout in blocks was written in plain C and in vector types, the first figures of both tell whether plain C is enough"
)

EVIDENCE_NOTES = {
    "live": "verified; besides, the program itself ran on the layout to its end, printed the same, and was timed",
    "verified": "ran on the program's own data and left the same bytes and results as the original",
    "close": "differs from the original by rounding only, in sums that were added in another order",
    "replayed": "the hotspot's loads and stores alone, in its order and loops and in words of at most 8 bytes, without the "
    "computation; compared with their replay in the present layout: no speedup of the hotspot is claimed",
    "modelled": "cache lines counted from the trace; no speedup is claimed",
    "rejected": "differed, crashed, hung, or could not be built; not a candidate",
}
