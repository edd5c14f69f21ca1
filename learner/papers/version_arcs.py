"""Active learning with the exact version space of the plane, for many runs at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.arrays import Array

MOST_PASSES = 10_000


@dataclass(frozen=True, slots=True)
class Settled:
    informative: NDArray[np.intp]
    others: NDArray[np.intp]
    widest: NDArray[np.intp]

    @property
    def labels(self) -> NDArray[np.intp]:
        return self.informative + self.others


def arc_bounds(turns: Array, labelled: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return the ends of the version space after each label, as angles from the labelling hypothesis."""
    known = turns[labelled]
    return np.maximum.accumulate(known, axis=-1) - np.pi, np.minimum.accumulate(known, axis=-1)


def learn_until_settled(
    turns: Array, starts: NDArray[np.intp], *, probability: float, screened: bool = True, rng: np.random.Generator
) -> Settled:
    r"""Go round a randomly ordered pool until the version space crosses no line of it.

    A record whose line crosses the version space is asked about with probability p and goes back to the pool
    otherwise; another is asked about with probability 1 - p and is dropped otherwise. With p = 1 this is CAL.
    Each answer shrinks the version space before the next record is examined.

    UNSOUND for p < 1, for reproduction only: the version space is a clean one, and dropping a record tells on it
    with certainty.

    References
    ----------
    .. [1] Rane, Brito 2019, sections III.B and IV.B.
    """
    n_runs, n_points = len(starts), len(turns)
    order = np.argsort(rng.random((n_runs, n_points)), axis=1)
    pool = np.ones((n_runs, n_points), dtype=np.bool_)
    np.put_along_axis(pool, starts, np.False_, axis=1)
    pool = np.take_along_axis(pool, order, axis=1)
    least, most = turns[starts].min(axis=1), turns[starts].max(axis=1)
    informative, others = np.zeros(n_runs, dtype=np.intp), np.zeros(n_runs, dtype=np.intp)
    examined = np.zeros((n_runs, n_points), dtype=np.intp)
    # The lines that cross longest are those of the extreme points.
    goal_least, goal_most = turns.min(), turns.max()
    for _ in range(MOST_PASSES):
        for place in range(n_points):
            unsettled = (least > goal_least) | (most < goal_most)
            turn = turns[order[:, place]]
            crosses = (turn < least) | (turn > most)
            live = pool[:, place] & unsettled
            chance = np.where(crosses, probability, 1 - probability) if screened else 1.0
            asked = live & (rng.random(n_runs) < chance)
            examined[:, place] += live
            informative += asked & crosses
            others += asked & ~crosses
            pool[:, place] &= ~(asked | (live & ~crosses))
            least = np.where(asked, np.minimum(least, turn), least)
            most = np.where(asked, np.maximum(most, turn), most)
        if not ((least > goal_least) | (most < goal_most)).any():
            return Settled(informative, others, examined.max(axis=1))
    raise ArithmeticError(f"some runs did not settle within {MOST_PASSES} passes")
