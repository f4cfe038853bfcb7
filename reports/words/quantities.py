"""Single values as words: sizes, durations, counts, ratios, lists of names. Shared by the terminal and the HTML report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.threads import Time

MOST_NAMES = 6


MUCH_WAITING = 0.1
AT_ONCE = 1.1


def is_cpu_time(waits: float, processors: float) -> bool:
    """Tells whether a gain of a program's CPU time is no gain of the time that it takes: it waits, or several processors run
    it at once, of which the others go on as before."""
    return waits_much(waits) or processors > AT_ONCE


def waits_much(part: float) -> bool:
    """Tells whether a program waits for so much of the time that it takes that a gain of its CPU time is no gain of that."""
    return part > MUCH_WAITING


def size(count: int) -> str:
    """Bytes with a binary prefix: ``95.4 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def nanoseconds(value: float | None) -> str:
    """A duration with a unit that reads well."""
    if value is None:
        return "–"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} ns"


def number(value: int) -> str:
    """An integer with thin groups: ``1 250 000``."""
    return f"{value:,}".replace(",", " ")


def interval(value: Interval | None) -> str:
    """``3.61× [3.50, 3.70]``, or a dash."""
    if value is None:
        return "–"
    return f"{value.median:.2f}× [{value.lo:.2f}, {value.hi:.2f}]"


def inverse(value: Interval | None) -> Interval | None:
    """A ratio the other way round: the identity's time ratio as a speedup."""
    if value is None or min(value.lo, value.median, value.hi) <= 0:
        return None
    return Interval(1 / value.median, 1 / value.hi, 1 / value.lo, value.restores)


def listing(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """``x, y, z``; long lists are cut: ``x, y and 7 more``."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def as_arrays(names: Sequence[str]) -> list[str]:
    """``names`` of fields, with the numbers of an array as one name where there are many: ``xr[...]``."""
    heads = [name.rpartition("[")[0] if name.endswith("]") else "" for name in names]
    many = {head for head, count in Counter(heads).items() if head and count >= MOST_NAMES}
    return list(dict.fromkeys(f"{head}[...]" if head in many else name for name, head in zip(names, heads, strict=True)))


def digits(value: float) -> int:
    """Digits after the point that milliseconds need."""
    return 1 if value >= 1 or value == 0 else 3


def spent(value: Time | None) -> str:
    """``104 µs [102, 125]``, or a dash."""
    if value is None:
        return "–"
    shown = nanoseconds(value.ns)
    scale = next(s for s in (1e9, 1e6, 1e3, 1.0) if value.ns >= s or s == 1.0)
    low, high = (f"{v:.3g}" if v < 1000 else f"{v:.0f}" for v in (value.lo / scale, value.hi / scale))
    return f"{shown} [{low}, {high}]"


def shares(each: Sequence[float]) -> str:
    """``70 to 90%``: the least and the greatest of the threads' shares."""
    if not each:
        return "–"
    low, high = f"{min(each) * 100:.0f}", f"{max(each) * 100:.0f}"
    return f"{low}%" if low == high else f"{low} to {high}%"
