"""Learn which tiles suit an OpenCL device, once per machine, for the advice of `layout-advise opencl`.

  layout-advise calibrate --device            all devices of this machine
  layout-advise calibrate --device pthread    those with this in their name or platform's

Small kernels over records of 2 to 12 members, streams and stencils, are timed in arrays of structures and in tiles of 4 to
4096 elements, for buffers from 8 KiB to some 20 MiB. A decision tree on what a cluster is like says from then on which tile
`opencl` tries first on this device (Kofler, Cosenza, Fahringer 2015). It is kept in the user's cache, and goes with a
device, its driver and the processor. Takes some minutes a device; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from layout_advise.errors import UsageError
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.measure.clock import clock_of
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.tiles.samples import SHAPES, samples
from layout_advise.opencl.tiles.stored import SCHEMA, Calibration, machine_name, store
from layout_advise.tiles.train import cross_validated, learner, loss, trained
from layout_advise.progress import Progress

SEED = 2015


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``calibrate``."""
    parser.add_argument(
        "--device", metavar="NAME", nargs="?", const="", help="OpenCL devices with this in their name or platform's"
    )
    parser.add_argument(
        "--shapes", type=int, default=len(SHAPES), metavar="N", help="so many of the kernels (default: all, %(default)s)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only the result and errors")
    parser.add_argument("-v", "--verbose", action="store_true", help="more about what is being done")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``calibrate``."""
    if arguments.device is None:
        raise UsageError("nothing to calibrate", "no device is named", "--device takes all OpenCL devices of this machine")
    if not 4 <= arguments.shapes <= len(SHAPES):
        raise UsageError(f"--shapes must be between 4 and {len(SHAPES)}")
    learner()  # said before anything is timed
    for device in devices(arguments.device):
        with Progress(arguments.quiet, arguments.verbose) as progress:
            made = calibrated(device, arguments.shapes, progress)
        path = store(device, made)
        sys.stdout.write(
            f"{device.name.strip()}: tiles take {made.loss:.3f} of the best ones' time on kernels not trained on "
            f"(always {OPENCL.first_tiles}: {made.loss_of_first:.3f}, none: {made.loss_of_none:.3f}), kept in {path}\n"
        )
    return 0


def calibrated(device: Any, shapes: int, progress: Progress) -> Calibration:
    """The calibration of a device on some of the kernels, drawn by chance, the same ones each time."""
    chosen = [SHAPES[k] for k in sorted(random.Random(SEED).sample(range(len(SHAPES)), shapes))]
    found = samples(name_of(device), chosen, progress.step, clock_of(device))
    tree = trained(found)
    return Calibration(
        schema=SCHEMA,
        platform=device.platform.name,
        device=device.name.strip(),
        driver=device.driver_version,
        machine=machine_name(),
        created=time.time(),
        tree=tree,
        loss=cross_validated(found, tree.alpha),
        loss_of_first=loss(found, lambda _shape: OPENCL.first_tiles),
        loss_of_none=loss(found, lambda _shape: 1),
        samples=tuple(found),
    )
