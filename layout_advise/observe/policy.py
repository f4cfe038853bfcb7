"""The limits of a stage: what counts as data, how kinds of calls are looked for, and how long other users are watched."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservePolicy:
    """What counts as data, how kinds of calls are looked for, and how long other users are watched."""

    least_bytes: int = limit(256, "bytes", "A smaller memory object is not worth a line in the report.")
    scattered: int = limit(16, "blocks", "From so many heap blocks under one reference on these are scattered objects.", 19)
    arena: float = limit(
        1 / 16, "part", "A block with so much of the bytes of all scattered objects is an array among them.", 67
    )
    most_touched: float = limit(
        0.9,
        "part",
        "A call that touches no larger part of an array's elements leaves others to other calls.",
    )
    beside: int = limit(
        2,
        "calls",
        "So many calls beside the one studied are traced, where the time allows, one at least.",
        17,
    )
    further: int = limit(7, "calls", "So many more where two of them differ: to see how they alternate.", 17)
    beside_seconds: float = limit(1.5, "s", "After so long no further call beside is traced.", 17)
    further_seconds: float = limit(8.0, "s", "After so long none of the further ones is.", 17)
    timed_seconds: float = limit(
        4.0,
        "s",
        "At most about so long the first calls may take that are timed again for the kinds' shares.",
        17,
    )
    fewest_processes: int = limit(3, "processes", "At least so many are timed for the kinds' shares ...", 17)
    most_processes: int = limit(7, "processes", "... at most so many ...", 17)
    processes_seconds: float = limit(4.0, "s", "... and none is started later than that.", 17)
    nearly_most: float = limit(
        0.75,
        "part",
        "A kind of calls with this part of the greatest share may stand first: the program need not be stopped again.",
        17,
    )
    most_puts: int = limit(
        1 << 22, "words", "More of what the program writes between the calls of a batch is not put back.", 68
    )
    most_compared: int = limit(
        1 << 28, "bytes", "In more memory it is not compared whether less need be put back between calls.", 68
    )
    most_users: int = limit(40, "users", "Of a structure at most so many other users are told.", 20)
    watched_seconds: float = limit(1.0, "s", "So long the program is watched for other users ...", 20)
    most_watched_seconds: float = limit(2.5, "s", "... and up to that where the next call has not come by then.", 20)
    answer_calls: float = limit(1000.0, "calls", "A stopped program has the time of so many calls for an answer ...")
    least_answer: float = limit(20.0, "s", "... at least so long ...")
    most_answer: float = limit(120.0, "s", "... and so long at most, or where the time of a call is not known.")


OBSERVE = ObservePolicy()
