"""A decision tree for tiles, as data: it can be followed without the library that trained it."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Shaped(Protocol):
    """A cluster as a tree asks about it."""

    @property
    def features(self) -> tuple[float, ...]:
        """The numbers that tiles hang on, in the order of the tree."""


class TreeNode(msgspec.Struct, frozen=True):
    """A question (is ``feature`` at most ``threshold``? then ``left``, else ``right``), or an answer where ``feature`` is
    -1: ``tile``. Nodes are named by their place in the tree's list."""

    feature: int
    threshold: float
    left: int
    right: int
    tile: int


class TileTree(msgspec.Struct, frozen=True):
    """The root comes first. ``alpha`` is the price of a leaf that it was pruned with."""

    nodes: tuple[TreeNode, ...]
    alpha: float

    def tile(self, shape: Shaped) -> int:
        """The tile for a cluster."""
        node = self.nodes[0]
        while node.feature >= 0:
            node = self.nodes[node.left if shape.features[node.feature] <= node.threshold else node.right]
        return node.tile
