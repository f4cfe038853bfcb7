"""All tracing backends. A new one is a module with a class of the protocol's form, and an entry here."""

from __future__ import annotations

from layout_advise.tracer.backends.clone.backend import CloneBackend
from layout_advise.tracer.backends.pin.run import PinBackend
from layout_advise.tracer.backends.protocol import Backend
from layout_advise.tracer.backends.step.record import StepBackend
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend

BACKENDS: tuple[Backend, ...] = (CloneBackend(), ValgrindBackend(), PinBackend(), StepBackend())
"""In the order in which ``--backend auto`` tries those that are ``automatic``."""


def backend_names() -> tuple[str, ...]:
    """The names of all backends."""
    return tuple(backend.name for backend in BACKENDS)


def backend_named(name: str) -> Backend:
    """The backend called ``name``, one of :func:`backend_names`."""
    return next(backend for backend in BACKENDS if backend.name == name)


def automatic_backends(*, team: bool) -> tuple[Backend, ...]:
    """The backends that ``--backend auto`` tries, the preferred one first; those alone that trace a ``team`` of threads."""
    return tuple(backend for backend in BACKENDS if backend.automatic and (backend.teams or not team))
