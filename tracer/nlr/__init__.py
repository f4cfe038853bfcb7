"""The folding code in C, and its binding.

``nlr.c`` folds a stream of addresses into nested loops (Ketterlin and Clauss, CGO 2008), ``nlr_cycle.c`` finds their
periods, ``nlr_set.c`` keeps what random accesses touched. ``build_binding`` is the cffi description; setup.py builds
``layout_advise.tracer._nlr`` from it.
"""
