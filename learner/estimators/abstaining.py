"""Thresholds below which a model abstains, from noisy counts of right and wrong answers on a secret sample."""

# The model was not trained on the sample. Counts over the pool cut its confidences into bins; on the sample each bin
# has a count of wrong and one of right answers. From the surest bin on, each threshold is tested against the hypothesis
# that wrong answers are as many as allowed, and the first test that fails ends the walk, so all tests together err as
# often as one (fixed-sequence testing [1]). Everything here is computed from released counts and public numbers.
# [1] Angelopoulos, Bates, Candès, Jordan, Lei, "Learn then test", 2021.

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# Shares of right answers, and how many answers there are to one wrong one.
WANTED = {0.8: 5, 0.9: 10, 0.95: 20, 0.99: 100}
# Level of the test; what it leaves of 0.05 is for the noise in the number of answers, which the law takes as given.
MISSED = 0.04
# Ends of the cells of the pool's counts, in log-odds of the likeliest class.
ENDS = np.arange(-4.0, 10.25, 0.25)
POOL_CELLS = len(ENDS) + 1
# Parts of the pool that thresholds let through, about; the first one is where tests begin.
PARTS = (0.3, 0.45, 0.6, 0.75, 0.9, 1.0)
SAMPLE_CELLS = 2 * len(PARTS)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Least probability of a named class, with the part of the pool that is as sure; None where no test passed."""

    precision: float
    threshold: float | None
    answered: float


def confidence_cells(probabilities: Floats) -> Numbers:
    """Return the cell of the likeliest class's probability, from shape (n, classes) to (n,)."""
    sure = np.clip(probabilities.max(axis=1), 1e-12, 1 - 1e-12)
    cells: Numbers = np.searchsorted(ENDS, np.log(sure) - np.log1p(-sure), side="right").astype(np.int64)
    return cells


def pool_epsilon(size: int) -> float:
    """Return the epsilon, in hundredths, with which noise moves a bin's end by about a twentieth of the pool."""
    wanted = math.sqrt(2 * POOL_CELLS) * 20 / max(size, 1)
    return min(1.0, max(0.01, math.ceil(100 * wanted) / 100))


def bins(pool: Floats) -> Numbers:
    """Return the first cell of each bin, descending, shape (len(PARTS),), from noisy counts over the pool."""
    reached = _reached(pool)
    firsts = [int(np.argmin(np.abs(reached - part))) for part in PARTS[:-1]]
    # The last bin holds all the rest.
    return np.array([*sorted(firsts, reverse=True), 0], dtype=np.int64)


def _reached(pool: Floats) -> Floats:
    """Return the part of the pool in each cell or above it."""
    above: Floats = np.cumsum(pool[::-1])[::-1] / max(float(pool.sum()), 1.0)
    return above


def outcome_cells(cells: Numbers, right: NDArray[np.bool_], firsts: Numbers) -> Numbers:
    """Return the one cell of each sampled record, shape (n, 1): its bin, and whether the model is right."""
    place = (cells[:, np.newaxis] < firsts).sum(axis=1)
    found: Numbers = (2 * place + right)[:, np.newaxis].astype(np.int64)
    return found


def thresholds(pool: Floats, sample: Floats, *, scale: float) -> list[Threshold]:
    """Return a threshold for each wanted share of right answers.

    Parameters
    ----------
    pool : ndarray of shape (POOL_CELLS,)
        Noisy counts of the likeliest class's probability.
    sample : ndarray of shape (SAMPLE_CELLS,)
        Noisy counts by bin: wrong, right.
    scale : float
        Of the discrete Laplace noise on the sample's counts.

    Returns
    -------
    list of Threshold
        Each keeps its precision with probability 0.95 or more.
    """
    firsts, reached = bins(pool), _reached(pool)
    wrong, right = np.cumsum(sample.reshape(-1, 2), axis=0).round().astype(np.int64).T
    found = []
    for precision, per_wrong in WANTED.items():
        passed = -1
        for place in range(len(firsts)):
            if chance_of(wrong[place], right[place], noises=place + 1, scale=scale, per_wrong=per_wrong) > MISSED:
                break
            passed = place
        cell = int(firsts[passed])
        found.append(
            Threshold(precision, None, 0.0)
            if passed < 0
            else Threshold(precision, _probability(cell), float(np.clip(reached[cell], 0.0, 1.0)))
        )
    return found


def _probability(cell: int) -> float:
    return float(1 / (1 + math.exp(-ENDS[cell - 1]))) if cell else 0.0


def chance_of(wrong: int, right: int, *, noises: int, scale: float, per_wrong: int) -> float:
    r"""Return how likely so few wrong answers are where one in `per_wrong` is wrong.

    Notes
    -----
    :math:`(s-1)W - R` is, in every answer, s - 1 with probability 1/s and else -1, and has the noise of both sums: its
    law follows from its characteristic function.
    """
    n, s, decay = max(int(wrong + right), 1), per_wrong, math.exp(-1 / scale)
    spread = math.sqrt(n * (s - 1) + 2 * noises * (scale * s) ** 2)
    size = 2 ** math.ceil(math.log2(2 * (10 * spread + 40 * scale * s + abs((s - 1) * wrong - right)) + 4))
    angles: Floats = 2 * np.pi * np.fft.fftfreq(size).astype(np.float64)

    def noise(angle: Floats) -> Floats:
        return ((1 - decay) ** 2 / (1 - 2 * decay * np.cos(angle) + decay**2)) ** noises

    answers = (np.exp(1j * (s - 1) * angles) / s + (1 - 1 / s) * np.exp(-1j * angles)) ** n
    law = np.fft.fft(answers * noise((s - 1) * angles) * noise(angles)).real / size
    places = np.fft.fftfreq(size, 1 / size)
    return float(np.clip(law[places <= (s - 1) * wrong - right].sum(), 0.0, 1.0))


def stored(found: Sequence[Threshold]) -> list[dict[str, float | None]]:
    """Return thresholds as plain JSON values."""
    return [
        {"precision": one.precision, "threshold": one.threshold, "answered": round(one.answered, 4)} for one in found
    ]
