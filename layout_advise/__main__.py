"""``python -m layout_advise``, and the command: heeds signals before the rest is brought in, which takes a while."""

import os
import resource
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

ADDRESSES = 480 << 20
"""Bytes of address space without which a run ends somewhere, in no orderly way: the libraries alone take half of them."""


def main() -> int:
    """Run the command line. A signal before it begins finds nothing that would have to be stopped; one after its end changes
    nothing: the interpreter takes a while to end, and would die of it."""
    room, _ = resource.getrlimit(resource.RLIMIT_AS)
    if room != resource.RLIM_INFINITY and room < ADDRESSES:
        text = f"too little memory: {room >> 20} MB are allowed (ulimit -v); it needs {ADDRESSES >> 20} at least"
        os.write(2, f"layout-advise: {text}\n".encode())
        return 4
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    from layout_advise.cli import main as carry_out

    try:
        return carry_out()
    finally:
        for number in SIGNALS:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_IGN)
        # An interruption of code that is text (a dataclass being made) is noted by CPython, also where it was caught, and
        # the process then dies of SIGINT at its end. Other text that runs through clears that.
        exec("")


def _end(number: int, _frame: object) -> None:
    os.write(2, b"layout-advise: interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
