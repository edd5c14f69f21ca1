"""Disjoint secret blocks of a pool: one secret coin gives each record its block, or none."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability

BLOCK_ROWS = 131_072
MOST_BLOCKS = 20


def block_rates(first_rate: float, growth: float) -> tuple[float, ...]:
    r"""Return the public probability of each block, exactly as drawn and charged; at most `MOST_BLOCKS`.

    Each block is so many times as likely as the one before, as long as all of them fit into one:
    :math:`q + gq + g^2q + \ldots \le 1`.

    Parameters
    ----------
    first_rate : float
        Probability q of the first block, 0 < q < 1; that of each is the nearest multiple of 2**-53.
    growth : float
        Factor g, >= 1.
    """
    if not 1 <= growth < math.inf:
        raise ValueError(f"growth must be >= 1 and finite, got {growth}")
    rates = [coin_probability(first_rate)]
    while len(rates) < MOST_BLOCKS and (larger := rates[-1] * Fraction(growth)) <= 1 - sum(rates):
        rates.append(coin_probability(larger))
    return tuple(map(float, rates))


def weights_of_block(before: Sequence[float], own: float) -> tuple[float, float]:
    """Return what sums of blocks of rates `before` and those of a new one are multiplied by, so that each counts by its
    rate.

    All blocks have the same noise, and a mean of noisy means is best with weights as its squared sizes. The sums stay
    as large as plain ones.
    """
    scale = _scale([*before, own])
    return scale / _scale(before), scale * own


def _scale(rates: Sequence[float]) -> float:
    return math.fsum(rates) / math.fsum(rate**2 for rate in rates)


def draw_blocks(n_records: int, rates: Sequence[float], rng: RandomSource) -> NDArray[np.uint8]:
    """Flip one coin for each record and return its block from 1, shape (n_records,), or 0 for none."""
    # Multiples of 2**-53 up to one, whose sums no float rounds.
    edges = np.cumsum(rates)
    blocks = np.empty(n_records, dtype=np.uint8)
    for start in range(0, n_records, BLOCK_ROWS):
        part = blocks[start : start + BLOCK_ROWS]
        # A uniform multiple of 2**-53 falls below an edge with exactly the probability of that edge.
        places = np.searchsorted(edges, rng.random((len(part),)), side="right")
        part[:] = np.where(places == len(edges), 0, places + 1)
    return blocks
