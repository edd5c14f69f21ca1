"""Disjoint secret blocks of a pool: one secret coin gives each record its block, or none."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.series import mixture_epsilon
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability

BLOCK_ROWS = 131_072


def block_edges(first_rate: float) -> NDArray[np.float64]:
    r"""Return the probabilities of blocks 1..k together, for every block there is.

    The second block is as likely as the first, each further one twice as likely as the one before, as long as
    all of them fit into one: :math:`q, 2q, 4q, \ldots \le 1`.

    Parameters
    ----------
    first_rate : float
        Public probability q of the first block, 0 < q < 1, taken as the nearest multiple of 2**-53.

    Returns
    -------
    ndarray of float64, shape (blocks,)
        Increasing and exact.

    Raises
    ------
    ValueError
        If the rate is out of range.
    """
    rate = coin_probability(first_rate)
    edges = [rate]
    while 2 * edges[-1] <= 1:
        edges.append(2 * edges[-1])
    return np.array([float(edge) for edge in edges])


def block_rates(first_rate: float) -> tuple[float, ...]:
    """Return the public probability of each block: q, q, 2q, 4q and so on, exactly as drawn and charged."""
    edges = [Fraction(float(edge)) for edge in block_edges(first_rate)]
    return tuple(float(edge - before) for before, edge in zip([Fraction(0), *edges[:-1]], edges, strict=True))


def blocks_epsilon(training_epsilon: float, rates: tuple[float, ...]) -> float:
    """Return what trainings on exclusive secret blocks cost a record together, as one series."""
    return mixture_epsilon(rates, [training_epsilon] * len(rates)) if rates else 0.0


def weights_of_block(before: Sequence[float], own: float) -> tuple[float, float]:
    """Return what earlier sums and those of a new block are multiplied by, so that a block counts by its public rate.

    All blocks have the same noise, and a mean of noisy means is best with weights as its squared sizes. The sums stay
    as large as plain ones.

    Parameters
    ----------
    before : sequence of float
        Rates of the blocks whose sums, so weighted, are there; at least one.
    own : float
        Rate of the new block.
    """
    scale = _scale([*before, own])
    return scale / _scale(before), scale * own


def _scale(rates: Sequence[float]) -> float:
    return math.fsum(rates) / math.fsum(rate**2 for rate in rates)


def draw_blocks(n_records: int, first_rate: float, rng: RandomSource) -> NDArray[np.uint8]:
    """Flip one coin for each record.

    Parameters
    ----------
    n_records : int
        Number of records, >= 0.
    first_rate : float
        Probability of the first block, as in `block_edges`.
    rng : RandomSource
        Source of the coins.

    Returns
    -------
    ndarray of uint8, shape (n_records,)
        The block of each record from 1, or 0 for those that no block ever asks about.
    """
    edges = block_edges(first_rate)
    blocks = np.empty(n_records, dtype=np.uint8)
    for start in range(0, n_records, BLOCK_ROWS):
        part = blocks[start : start + BLOCK_ROWS]
        # A uniform multiple of 2**-53 falls below an edge with exactly the probability of that edge.
        places = np.searchsorted(edges, rng.random((len(part),)), side="right")
        part[:] = np.where(places == len(edges), 0, places + 1)
    return blocks
