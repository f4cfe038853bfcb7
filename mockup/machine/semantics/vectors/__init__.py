"""Rules for vector instructions: each function takes the instruction's context and adds its effects.

``moves`` (loads, stores, broadcasts, gathers), ``packed_integer``, ``shuffles``; of AVX-512 ``masks``, ``subvectors``
and the rest in ``avx512``. The table that finds them is :mod:`layout_advise.mockup.machine.semantics`.
"""
