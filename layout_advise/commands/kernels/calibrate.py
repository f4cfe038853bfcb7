"""Learn how long blocks of elements are to be on this machine, once, for the advice of `trace` and `opencl`.

  layout-advise calibrate                     the processor, for layouts in blocks that `trace` tries
  layout-advise calibrate --device            all OpenCL devices of this machine, for `opencl`
  layout-advise calibrate --device pthread    those with this in their name or platform's
  layout-advise calibrate --cpu --device      both

Small kernels over records of 2 to 12 members are timed as arrays of structures, in tiles of 2 elements and more, and as
structures of arrays: on the processor compiled C, streams and picked elements, of 128 elements to more than the last cache
holds; on a device OpenCL, streams and stencils, of 8 KiB to some 20 MiB. A decision tree on what a cluster of members is
like says from then on which block length to try for each (Kofler, Cosenza, Fahringer 2015); what is tried is measured as
everything else is. It is kept in the user's cache and goes with the processor and its caches, or with a device, its driver
and the processor; `doctor` tells of it. Takes some minutes; nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any

from layout_advise import machine
from layout_advise.errors import UsageError
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.measure.clock import clock_of
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.tiles.samples import SHAPES, samples
from layout_advise.opencl.tiles.stored import SCHEMA, Calibration, machine_name, store
from layout_advise.progress import Progress
from layout_advise.tiles.processor import stored as of_processor
from layout_advise.tiles.processor.calibrate import EXTRA, some
from layout_advise.tiles.processor.calibrate import calibrated as calibrated_processor
from layout_advise.tiles.processor.shapes import shapes as processor_shapes
from layout_advise.tiles.train import cross_validated, learner, loss, trained

SEED = 2015
FEWEST = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``calibrate``."""
    parser.add_argument("--cpu", action="store_true", help="this machine's processor (default where no --device is given)")
    parser.add_argument(
        "--device", metavar="NAME", nargs="?", const="", help="OpenCL devices with this in their name or platform's"
    )
    parser.add_argument(
        "--shapes", type=int, metavar="N", help=f"so many of the kernels, {FEWEST} at least (default: all, some hundred)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only the result and errors")
    parser.add_argument("-v", "--verbose", action="store_true", help="more about what is being done")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``calibrate``."""
    processor = arguments.cpu or arguments.device is None
    every = processor_shapes(machine.describe())
    most = min([len(every)] * processor + [len(SHAPES)] * (arguments.device is not None))
    if arguments.shapes is not None and not FEWEST <= arguments.shapes <= most:
        raise UsageError(f"--shapes must be between {FEWEST} and {most}")
    learner(EXTRA if arguments.device is None else "opencl")  # said before anything is timed
    if processor:
        with Progress(arguments.quiet, arguments.verbose) as progress:
            of_this = calibrated_processor(some(every, arguments.shapes or len(every)), progress.step)
        _tell_processor(of_this)
    for device in devices(arguments.device) if arguments.device is not None else ():
        with Progress(arguments.quiet, arguments.verbose) as progress:
            made = calibrated(device, arguments.shapes or len(SHAPES), progress)
        path = store(device, made)
        sys.stdout.write(
            f"{device.name.strip()}: tiles take {made.loss:.3f} of the best ones' time on kernels not trained on "
            f"(always {OPENCL.first_tiles}: {made.loss_of_first:.3f}, none: {made.loss_of_none:.3f}), kept in {path}\n"
        )
    return 0


def _tell_processor(made: of_processor.ProcessorCalibration) -> None:
    path = of_processor.store(made)
    sys.stdout.write(
        f"{made.machine.cpu}: tiles take {made.loss:.3f} of the best ones' time on kernels not trained on (always arrays of "
        f"structures: {made.loss_of_records:.3f}, structures of arrays: {made.loss_of_arrays:.3f}, blocks of a vector: "
        f"{made.loss_of_blocks:.3f}), kept in {path}\n"
    )


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
