"""How much of their memory picked elements fill."""

from __future__ import annotations

import numpy as np
import pytest

from layout_advise.observe.chosen_elements import _filled


@pytest.mark.parametrize(("pages_held", "wanted"), [(100, 160 / 192), (10, 20 * 160 / (20 * 4096))])
def test_what_is_filled_is_told_by_pages_where_the_l2_does_not_hold_them(
    pages_held: int, wanted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of 160 bytes, each at the begin of a page of its own."""
    monkeypatch.setattr("layout_advise.machine.caches", lambda: {(2, "Unified"): pages_held * 4096})
    used = np.zeros(20 * 4096, np.bool_)
    used.reshape(20, 4096)[:, :160] = True
    assert _filled(used, 1 << 20, 1) == pytest.approx(wanted)
