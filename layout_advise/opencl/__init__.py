"""OpenCL kernels: field graphs from source, rewritten kernels, measured on each device (Kofler et al. 2015).

In come launches (from a spec, from pyopencl objects, or recorded from a host program), out goes a report of its own
form (``reports/model/kernels.py``). ``source/`` parses, ``graph/`` makes field graphs, ``rewrite/`` new source and
marshalling, ``host/`` knows launches and devices, ``intercept/`` records those of a host program, ``measure/`` runs
and times in fresh processes. ``records`` finds what there is to lay out, ``candidates`` says what is tried and
``neighbours`` what with the rest, ``search`` tries it on one device (``searched`` is what came out), ``groups`` with other
work-group sizes, ``verdict`` decides, ``placement/`` plans over several devices, ``describe`` makes the report's data, and
``study`` does all of it. Limits are in ``policy``; ``objects`` is for use from Python:

    from layout_advise import opencl
    report = opencl.advise(queue, kernel, (65536,), (64,), buffer, numpy.int32(65536))
"""

from layout_advise.opencl.objects import advise

__all__ = ["advise"]
