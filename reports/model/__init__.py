"""The report as data: the contract ``layout-advise.report/1``.

``contract`` is the whole report, ``hotspot`` the part about one region, ``structure`` its data structures, ``threads`` a
parallel region by its number of threads, ``candidate`` the layouts tried, ``live`` the calls of one
that was tried in the running program, ``source`` the lines of the source, ``plan`` the plan of the whole program.
Text, HTML and JSON are made of the same object; ``docs/report.schema.json`` is its schema, into
which ``descriptions`` puts what these classes say of each field. ``wanted`` says which of the layouts can be written into
source, and how, ``wanted_arrays`` of arrays as a whole.
``redact`` takes the user's code and paths out. ``farm`` is the summary of many runs: ``layout-advise.farm/1``;
``kernels`` of OpenCL kernels: ``layout-advise.opencl/1``.
"""
