"""The sum of x x^T over rows of bounded norm, released with exact discrete noise."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.sums import SecondMomentsEvent
from privacy.mechanisms.discrete import DiscreteGaussian, DiscreteLaplace
from privacy.mechanisms.randomness import RandomSource

# Entries of rows become multiples of 2**-10 of the bound, products of two entries multiples of 2**-20.
STEPS = 2**10
# Sums of this many rows are still exact in float64.
MOST_ROWS = 2**32


def shortened_rows(rows: NDArray[np.floating], *, norm_bound: float, steps: int = STEPS) -> NDArray[np.float64]:
    """Return rows as whole numbers of steps, so many to the bound, rounded towards zero so that none becomes longer."""
    whole = np.trunc(np.asarray(rows, dtype=np.float64) * (steps / norm_bound))
    squares = np.einsum("ij,ij->i", whole, whole)
    if not (squares <= steps**2).all():
        raise ValueError(f"rows must be finite with a norm of at most {norm_bound}: clip them first")
    return whole


def exact_moments(blocks: Iterable[NDArray[np.floating]], *, dimension: int, norm_bound: float) -> NDArray[np.int64]:
    """Return the sum of x x^T in squared steps, shape (dimension, dimension).

    Products of whole numbers below 2**53 and their sums have no rounding error in whatever order a library adds
    them, so that one row moves the sum by its own product and nothing else.
    """
    total, count = np.zeros((dimension, dimension)), 0
    for block in blocks:
        steps = shortened_rows(block, norm_bound=norm_bound)
        count += len(steps)
        if count > MOST_ROWS:
            raise ValueError(f"at most {MOST_ROWS} rows can be summed exactly")
        total += steps.T @ steps
    return total.astype(np.int64)


def release_second_moments(
    blocks: Iterable[NDArray[np.floating]], event: SecondMomentsEvent, *, rng: RandomSource
) -> NDArray[np.float64]:
    r"""Return :math:`\sum_i x_i x_i^T` with noise, symmetric, shape (d, d).

    Parameters
    ----------
    blocks : iterable of ndarray, shape (rows, d)
        Rows of norm at most ``event.norm_bound``, in blocks.
    event : SecondMomentsEvent
        The noise and its price.
    rng : RandomSource
        Source of the noise; exact only if secure.

    References
    ----------
    .. [1] Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss: optimal bounds for privacy-preserving principal component
       analysis", 2014, Algorithm 1.
    """
    d = event.dimension
    moments = exact_moments(blocks, dimension=d, norm_bound=event.norm_bound)
    upper = np.triu_indices(d)
    unit = (event.norm_bound / STEPS) ** 2
    noise = DiscreteLaplace if event.noise == "laplace" else DiscreteGaussian
    noisy = np.zeros((d, d))
    noisy[upper] = noise(event.noise_scale / unit).release(moments[upper], rng=rng).astype(np.float64) * unit
    return noisy + np.triu(noisy, 1).T
