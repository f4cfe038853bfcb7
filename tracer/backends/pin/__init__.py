"""Tracing with Intel's Pin, where ``PIN_ROOT`` names a kit.

Pin is in no package registry; README.md here says how to get it. ``run`` builds the tool (C++, here) by the kit's rules
and runs the program under it; :mod:`layout_advise.tracer.backends.tool` reads what it leaves.
"""
