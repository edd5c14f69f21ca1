"""The experiment's data: labelled points in the plane that a line through the origin separates."""

from dataclasses import dataclass

import numpy as np

from learner.papers.experiment import Json
from privacy.arrays import Array

# How near to the separating line points of the three data sets may lie.
GAPS = {"wide": 0.4, "middle": 0.2, "narrow": 0.1}
POINTS: Json = {"points": 120, "radius": 4.0, "points_seed": 1, "cost": 1.0, "most_queries": 118}


@dataclass(frozen=True, slots=True)
class Constellation:
    """Points of two classes on either side of a line through the origin."""

    X: Array
    signs: Array
    direction: Array

    @property
    def signed(self) -> Array:
        """Each point times its label: a hypothesis is right about it iff their product is positive."""
        return self.X * self.signs[:, None]

    @property
    def norm_bound(self) -> float:
        return float(np.linalg.norm(self.X, axis=1).max())

    @property
    def turns(self) -> Array:
        r"""Angle in (0, pi), measured from the labelling hypothesis, at which each point's line is crossed.

        A labelled point keeps the hypotheses with angles in (turn - pi, turn), so the version space of a set of
        labelled points is the arc from their largest turn minus pi to their smallest.
        """
        across = np.array([-self.direction[1], self.direction[0]])
        signed = self.signed
        turned: Array = np.pi / 2 + np.arctan2(signed @ across, signed @ self.direction)
        return turned


def draw_constellation(*, points: int, radius: float, gap: float, rng: np.random.Generator) -> Constellation:
    """Draw points uniformly on a disc without a strip around the separating line."""
    if points < 2 or points % 2:
        raise ValueError(f"points must be even and >= 2, got {points}")
    if not 0 <= gap < radius:
        raise ValueError(f"gap must lie in [0, {radius}), got {gap}")
    angle = rng.uniform(0, 2 * np.pi)
    direction = np.array([np.cos(angle), np.sin(angle)])
    signs = np.repeat([1.0, -1.0], points // 2)
    found = np.empty((0, 2))
    while len(found) < points:
        square = rng.uniform(-radius, radius, size=(8 * points, 2))
        inside = np.linalg.norm(square, axis=1) <= radius
        found = np.vstack([found, square[inside & (square @ direction >= gap)]])
    return Constellation(found[:points] * signs[:, None], signs, direction)


def constellation(settings: Json, gap: float) -> Constellation:
    rng = np.random.default_rng(settings["points_seed"])
    return draw_constellation(points=settings["points"], radius=settings["radius"], gap=gap, rng=rng)
