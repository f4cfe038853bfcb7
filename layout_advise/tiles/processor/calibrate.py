"""The calibration of this machine's processor: kernels timed, a tree trained, losses told."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from layout_advise import machine
from layout_advise.tiles.processor.shapes import WHOLE, ClusterWalk, fitting
from layout_advise.tiles.processor.stored import SCHEMA, ProcessorCalibration
from layout_advise.tiles.processor.timing import COMPILER, FLAGS, samples
from layout_advise.tiles.train import cross_validated, loss, trained

SEED = 2015
EXTRA = "calibrate"
"""The extra of the package that brings scikit-learn."""


def some(shapes: Sequence[ClusterWalk], count: int) -> list[ClusterWalk]:
    """So many of the shapes, drawn by chance, the same ones each time."""
    return [shapes[k] for k in sorted(random.Random(SEED).sample(range(len(shapes)), count))]


def calibrated(shapes: Sequence[ClusterWalk], tell: Callable[[str], None]) -> ProcessorCalibration:
    """The calibration on these kernels. Raises MachineError without a compiler or scikit-learn."""
    here = machine.describe()
    longest = max(machine.vector_bytes(), default=16)
    found = samples(shapes, tell)
    tree = trained(found, EXTRA)

    def vectors(shape: ClusterWalk) -> int:
        return fitting(longest // shape.member_bytes, shape.elements)

    return ProcessorCalibration(
        schema=SCHEMA,
        machine=here,
        compiler=COMPILER,
        flags=FLAGS,
        created=time.time(),
        tree=tree,
        loss=cross_validated(found, tree.alpha),
        loss_of_records=loss(found, lambda _shape: 1),
        loss_of_arrays=loss(found, lambda _shape: WHOLE),
        loss_of_blocks=loss(found, vectors),
        samples=tuple(found),
    )
