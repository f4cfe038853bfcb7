"""Training of the tree: every tile within a hundredth of the best counts as right, pruned by cost and complexity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Protocol, TypeVar

import numpy as np

from layout_advise.errors import MachineError
from layout_advise.tiles.tree import Shaped, TileTree, TreeNode

AS_GOOD = 1.01
"""Tiles that take at most so much of the best one's time are samples."""
FOLDS = 6
MOST_ALPHAS = 16
SEED = 2015

ShapeT_co = TypeVar("ShapeT_co", bound=Shaped, covariant=True)


class TimedTiles(Protocol[ShapeT_co]):
    """A calibration kernel that was timed."""

    @property
    def shape(self) -> ShapeT_co:
        """The cluster that it goes through."""

    @property
    def times(self) -> Mapping[int, float]:
        """Its time by tile, in any unit."""

    def known(self, tile: int) -> int:
        """The tile of ``times`` that stands for ``tile``, which may be too long for the shape."""


def trained(samples: Sequence[TimedTiles[Shaped]], extra: str = "opencl") -> TileTree:
    """The tree whose price of a leaf does best on shapes that it was not trained on; of equal ones the simplest. Raises
    MachineError where scikit-learn is missing, which ``extra`` brings."""
    path = learner(extra)(random_state=SEED).cost_complexity_pruning_path(*_rows(samples))
    alphas = sorted({max(0.0, float(alpha)) for alpha in path.ccp_alphas})
    alphas = alphas[:: -(-len(alphas) // MOST_ALPHAS)]
    losses = {alpha: cross_validated(samples, alpha) for alpha in alphas}
    least = min(losses.values())
    return _grown(samples, max(alpha for alpha, loss in losses.items() if loss <= least * 1.002))


def loss(samples: Sequence[TimedTiles[ShapeT_co]], tile: Callable[[ShapeT_co], int]) -> float:
    """The time with the tiles chosen over that with the best ones, in the mean."""
    return fmean(sample.times[sample.known(tile(sample.shape))] / best(sample) for sample in samples)


def best(sample: TimedTiles[Shaped]) -> float:
    """The time with the best tile."""
    return min(sample.times.values())


def cross_validated(samples: Sequence[TimedTiles[Shaped]], alpha: float) -> float:
    """The loss on shapes that a tree has not seen."""
    order = np.random.default_rng(SEED).permutation(len(samples))
    folds = min(FOLDS, len(samples))
    losses = []
    for fold in range(folds):
        held = {int(k) for k in order[fold::folds]}
        tree = _grown([sample for k, sample in enumerate(samples) if k not in held], alpha)
        losses += [loss([samples[k]], tree.tile) for k in held]
    return fmean(losses)


def learner(extra: str = "opencl") -> Any:
    """The class of trees. Raises MachineError where scikit-learn is missing, which the ``extra`` of the package brings."""
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        why, hint = "the Python package scikit-learn is missing", f"pip install 'layout-advise[{extra}]'"
        raise MachineError("cannot calibrate", why, hint) from error
    return DecisionTreeClassifier


def _rows(samples: Sequence[TimedTiles[Shaped]]) -> tuple[list[tuple[float, ...]], list[int]]:
    good = [(s.shape.features, tile) for s in samples for tile, ns in s.times.items() if ns <= AS_GOOD * best(s)]
    return [features for features, _ in good], [tile for _, tile in good]


def _grown(samples: Sequence[TimedTiles[Shaped]], alpha: float) -> TileTree:
    made = learner()(random_state=SEED, ccp_alpha=alpha).fit(*_rows(samples))
    own = made.tree_
    tiles = made.classes_[np.argmax(own.value[:, 0, :], axis=1)]
    nodes = (
        TreeNode(int(f) if left >= 0 else -1, float(t), int(left), int(right), int(tile))
        for f, t, left, right, tile in zip(
            own.feature, own.threshold, own.children_left, own.children_right, tiles, strict=True
        )
    )
    return TileTree(tuple(nodes), alpha)
