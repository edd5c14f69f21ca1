"""Verdicts by intervals of four standard errors, which are wrong less than once in a thousand from ten runs on."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from learner.papers.experiment import ClaimVerdict, Json, interval
from privacy.arrays import Array


def at_most(found: Json, bound: float) -> ClaimVerdict:
    """Say whether a figure is at most the bound: undecided where its interval holds the bound, or after one run."""
    if found.get("runs", 2) < 2:
        return None
    if found["high"] <= bound:
        return True
    return False if found["low"] > bound else None


def above(found: Json, bound: float) -> ClaimVerdict:
    return opposite(at_most(found, bound))


def within(found: Json, low: float, high: float) -> ClaimVerdict:
    return all_of([above(found, low), at_most(found, high)])


def opposite(verdict: ClaimVerdict) -> ClaimVerdict:
    return None if verdict is None else not verdict


def all_of(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    answers = list(verdicts)
    return False if False in answers else None if None in answers else True


def any_of(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    return opposite(all_of(opposite(verdict) for verdict in verdicts))


def apart_from(first: Json, second: Json) -> Json:
    return interval(first["value"] - second["value"], math.hypot(first["error"], second["error"]))


def exponent(cells: Sequence[Json], weights: Sequence[float]) -> Json:
    r"""Return the weighted sum of the logarithms of independent means, such as an exponent of growth.

    Notes
    -----
    The error is the first-order one, :math:`\sqrt{\sum_i (w_i s_i / m_i)^2}` for means m with standard errors s.
    """
    means = [max(at["value"], 1e-9) for at in cells]
    return interval(
        math.fsum(weight * math.log(mean) for weight, mean in zip(weights, means, strict=True)),
        math.hypot(*(weight * at["error"] / mean for weight, mean, at in zip(weights, means, cells, strict=True))),
    )


def jackknife(groups: Sequence[Any], statistic: Callable[[Array], float]) -> Json:
    """Return a statistic of all runs, with its error from leaving out one seed at a time."""
    arrays, count = [np.asarray(group, dtype=np.float64) for group in groups], len(groups)
    left = np.array(
        [statistic(np.concatenate([*arrays[:place], *arrays[place + 1 :]], axis=-1)) for place in range(count)]
    )
    error = math.sqrt((count - 1) / count * float(((left - left.mean()) ** 2).sum()))
    return interval(statistic(np.concatenate(arrays, axis=-1)), error)
