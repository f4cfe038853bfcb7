"""The calibration of this machine's processor, its day, or that there is none."""

from __future__ import annotations

from layout_advise import machine
from layout_advise.commands.doctoring.diagnosis import Diagnosis
from layout_advise.tiles.processor.stored import others, stored


def calibration() -> Diagnosis:
    """Without it blocks are as long as vectors; one of another processor or with other caches is not taken."""
    here = machine.describe()
    found = stored(here)
    if found is not None:
        return Diagnosis("calibration", True, False, found.told.removeprefix("calibration "))
    elsewhere = others(here)
    text = f"none of this processor ({here.cpu})"
    if elsewhere:
        text += f"; not taken: {elsewhere[0].told}{' (other caches)' if elsewhere[0].machine.cpu == here.cpu else ''}"
    return Diagnosis("calibration", False, False, text, "layout-advise calibrate, some minutes; not needed")
