"""The advice on one device, by the rules of all verdicts: of what is verified, by the interval that is left."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.searched import Searched, Tried
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.kernels import CLAIMED_BY, CLOCK_NAMES, GroupSize


def claimed(one: Tried, found: Searched, sizes: Sequence[GroupSize] = ()) -> Interval | None:
    """The gain with its doubts: the hull of what the device's clock says and of what is left where both layouts have the
    best of the work-group sizes that were tried. By events, what the host's clock says is in it as well; by processor time
    it is not, as the machine's other work is in it (decision 91)."""
    if one.speedup is None or one.wall is None:
        return None
    ends = [one.speedup.lo, one.speedup.hi]
    if found.clock != "cpu":
        ends += [one.wall.lo, one.wall.hi]
    timed = [(size.original_ns, size.original_ns / size.speedup.median) for size in sizes if size.speedup is not None]
    if timed and found.original_ns:
        timed.append((found.original_ns, found.original_ns / one.speedup.median))
        ends.append(min(old for old, _ in timed) / min(new for _, new in timed))
    return Interval(one.speedup.median, min(ends), max(ends), one.speedup.restores)


def elapsed_gain(one: Tried, found: Searched) -> float | None:
    """The speedup of what the host waits for: by its own clock, on a processor by the processor's time, which other work on
    the machine does not lengthen as much."""
    ratio = one.speedup if found.clock == "cpu" else one.wall
    return None if ratio is None else ratio.median


def net(one: Tried, found: Searched) -> float | None:
    """The speedup of all launches as the host waits for them, with the layout brought in before them and back after them."""
    gain = elapsed_gain(one, found)
    if gain is None or one.conversion is None or not found.original_wall_ns:
        return None
    own = found.original_wall_ns / gain
    return found.original_wall_ns / (own + (one.conversion.best_in + one.conversion.best_out) * 1e6)


def break_even(one: Tried, found: Searched) -> int | None:
    """Rounds of launches after which the conversion is paid back; None where no gain that counts is sure."""
    gain, sure = elapsed_gain(one, found), claimed(one, found)
    if gain is None or sure is None or one.conversion is None or gain <= 1 or sure.lo <= OPENCL.smallest_gain:
        return None
    gained = found.original_wall_ns * (1 - 1 / gain)
    return max(1, int(-(-(one.conversion.best_in + one.conversion.best_out) * 1e6 // gained)))


def disagreement(one: Tried, found: Searched) -> str:
    """The words of both clocks where processor time shows a gain and the host's clock surely none, or the other way round;
    empty where they do not contradict each other, or both are in the claim."""
    if found.clock != "cpu" or one.speedup is None or one.wall is None:
        return ""
    least, own, wall = OPENCL.smallest_gain, one.speedup, one.wall
    if not (own.lo > least > wall.hi or own.hi < least < wall.lo):
        return ""
    times = f"{own.median:.2f} times as fast ({own.lo:.2f} to {own.hi:.2f}) by {CLAIMED_BY['cpu']}"
    return f"{times}, {wall.median:.2f} ({wall.lo:.2f} to {wall.hi:.2f}) by {CLOCK_NAMES['wall']}"


def winner(found: Searched) -> Tried | None:
    """The finalist with the best lower end; a simpler one that gains as much of it is listed behind it and wins ties."""
    finalists = [(one, gain) for one in found.tried if (gain := claimed(one, found)) is not None and one.verified]
    if not finalists:
        return None
    best = max(finalists, key=lambda pair: pair[1].median)
    tied = [one for one, gain in finalists if gain.median >= OPENCL.as_good * best[1].median]
    return min(tied, key=_effort)


def _effort(one: Tried) -> tuple[int, int]:
    layouts = one.variant.layouts
    tiles = sum(tile > 1 for each in layouts for tile in each.tiles)
    return tiles, sum(len(each.clusters) for each in layouts)


def verdict(found: Searched, name: str, sizes: Sequence[GroupSize] = ()) -> Verdict:
    """Change, keep or undecided, with the reason; ``name`` is that of the kernels, ``sizes`` are of the winner."""
    if not found.repeats:
        why = "the kernels leave other bytes when they are run again, so that no layout can be verified"
        return Verdict("undecided", None, None, "not-repeatable", f"Undecided on {name}: {why}.")
    best = winner(found)
    gain = claimed(best, found, sizes) if best is not None else None
    if best is None or gain is None:
        reasons = sorted({one.reason for one in found.tried if one.reason})
        why = reasons[0] if reasons else "no other layout could be tried"
        return Verdict("undecided", None, None, "nothing-verified", f"Undecided on {name}: {why}.")
    label = "; ".join(one.label for one in best.variant.layouts)
    if why := disagreement(best, found):
        text = f"Undecided on {name}: {label}: {why}; run it again on a machine with less other work."
        return Verdict("undecided", None, None, "clocks", text, interval=gain, about=best.variant.id, doubt="clocks")
    if gain.lo > OPENCL.smallest_gain:
        return _change(best, gain, found, name)
    own = claimed(best, found)
    if own is not None and own.lo > OPENCL.smallest_gain:
        why = f"it gains {gain.median:.2f} times, but {gain.lo:.2f} where each layout has its best work-group size"
        text = f"Undecided on {name}: {label}: {why}; try another group size first."
        return Verdict("undecided", None, None, "group-size", text, interval=gain, about=best.variant.id, doubt="group-size")
    which = f"the best of {len(found.tried)} layouts" if len(found.tried) > 1 else "the only other layout"
    left = f"{which} ({label}) is {_told(gain, found)}"
    most = max((c.hi for one in found.tried if (c := claimed(one, found)) is not None), default=1.0)
    if most < OPENCL.smallest_gain:
        return Verdict(
            "keep", None, None, "no-gain", f"Keep the layout of {name}: {left}.", interval=gain, about=best.variant.id
        )
    text = f"Undecided on {name}: {left}, which is not surely {OPENCL.smallest_gain:.2f}{_after(best)}."
    return Verdict("undecided", None, None, "wide-interval", text, interval=gain, about=best.variant.id, doubt="processes")


def _faster(best: Tried, found: Searched) -> str:
    """The fastest finalist, where it is left for a simpler one."""
    rated = [(claimed(one, found), one) for one in found.tried if one.verified]
    ranked = [(gain.median, one) for gain, one in rated if gain is not None]
    most, first = max(ranked, key=lambda pair: pair[0])
    if first is best:
        return ""
    return f" {first.variant.id} gains {most:.2f} with more buffers or tiles, which is as good."


def _after(one: Tried) -> str:
    """The processes that did not settle it."""
    return f" after {one.speedup.restores} processes" if one.speedup is not None else ""


def _told(gain: Interval, found: Searched) -> str:
    return f"{gain.median:.2f} times as fast ({gain.lo:.2f} to {gain.hi:.2f}) by {CLAIMED_BY[found.clock]}"


def _change(best: Tried, gain: Interval, found: Searched, name: str) -> Verdict:
    label = "; ".join(f"{one.record.name}: {one.label}" for one in best.variant.layouts if not one.is_original)
    whole = net(best, found)
    temporary = whole is not None and whole > OPENCL.smallest_gain
    use = (
        f"also where the host converts before and after the launches ({whole:.2f} times)"
        if temporary
        else "where the host keeps its data so; converting around the launches costs what is gained"
    )
    text = f"Change {name} to {label}: {_told(gain, found)}, {use}.{_faster(best, found)}"
    return Verdict(
        "change",
        best.variant.id,
        gain.median,
        "gain",
        text,
        use="temporary" if temporary else "permanent",
        interval=gain,
    )
