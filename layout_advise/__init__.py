"""The application: from a command line to a report, one room a stage.

``cli`` parses and catches errors, ``commands/`` holds a file a subcommand. ``checks`` looks at the program before anything
runs, ``rundir`` opens the run directory (``workspace`` is a region's part of it), ``pipeline`` samples and writes the
report, ``regions/`` goes from one region to the next until most of the samples have an answer; ``road`` goes through the
stages of one: ``choose/`` → ``observe/`` → ``propose/`` → ``build/`` → ``verify/`` → ``measure/`` → ``decide/`` →
``describe/``. Each stage takes frozen values of the stages before it and returns one.
``further_calls`` compares mock-ups at other calls, ``static_program`` only traces. ``config`` (settings), ``machine``
(cores, caches), ``reasons`` (a verdict's stable words), ``policies`` (the limits of all stages), ``progress`` and
``errors`` serve all of them. ``notebook/`` is the tool in Jupyter, from which ``open`` and ``trace`` here come.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_FROM = {
    "open": ("session", "open_run"),
    "trace": ("session", "trace_program"),
    "load_ipython_extension": ("magic", "load_ipython_extension"),
}


def __getattr__(name: str) -> Any:
    """``layout_advise.open`` and ``trace``, brought in when they are asked for: the command line does not need them."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, own = _FROM[name]
    return getattr(import_module(f"layout_advise.notebook.{module}"), own)
