"""The limits of a study of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenclPolicy:
    """Limits of what is tried of a kernel's records, how often it is timed, and what is advised."""

    epsilon: int = limit(64, "bytes", "Fields that are never farther apart lie in one cluster.", 73)
    most_measured: int = limit(12, "layouts", "No more layouts are timed on a device.", 73)
    first_tiles: int = limit(64, "elements", "The tile that is tried first where a cluster has several fields.", 73)
    finalists: int = limit(2, "layouts", "So many are timed again in new processes.", 73)
    processes: int = limit(5, "processes", "Fresh processes in which original and finalists are timed.", 73)
    fewest_resampled: int = limit(4, "processes", "Fewer than these are not resampled: more would say nothing new.", 91)
    further: int = limit(2, "times", "So many more processes, once, where these leave the answer open.", 91)
    seconds: float = limit(0.4, "s", "A process times each layout for about so long.", 73)
    fewest_calls: int = limit(3, "calls", "A process times each layout at least so often.", 73)
    most_calls: int = limit(200, "calls", "And not more often.", 79)
    smallest_gain: float = limit(1.05, "ratio", "The lower end of a gain must exceed this for a change.", 73)
    as_good: float = limit(0.97, "part of the gain", "A simpler layout that gains as much of the best is preferred.", 73)
    timeout: float = limit(600.0, "s", "A process that builds and times takes no longer.", 73)


OPENCL = OpenclPolicy()
