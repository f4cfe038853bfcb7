"""The tool in Jupyter: runs as objects that show themselves, and a cell magic.

In comes a run directory or a program, out come values with a short ``repr`` and HTML: ``session`` opens and makes runs,
``views`` are tables and layouts, ``timing`` times a layout on NumPy data, ``magic`` is ``%%layout_advise``. Used by
``import layout_advise as la``, as ``la.open("app.layout")``.
"""
