"""What noise on a vector costs, from the scale of the noise and the L2 sensitivity of the vector."""

import math
from fractions import Fraction
from typing import Literal

from privacy.accounting import checks, training
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.cost import Cost
from privacy.accounting.noise_words import NOISE_WORDS
from privacy.accounting.units import float_at_least, outward
from privacy.wording import as_message

VectorNoise = Literal["k_norm", "laplace", "gaussian"]


def gaussian_cost(sensitivity_l2: float, sigma: float, delta: float) -> Cost:
    """Return the charge of Gaussian noise: rho always, and an epsilon where `delta` names a point to charge."""
    rho = float_at_least((Fraction(sensitivity_l2) / Fraction(sigma)) ** 2 / 2)
    if delta > 0:
        return Cost(outward(gaussian_epsilon(outward(sensitivity_l2 / sigma), delta), 1e-11), delta, rho=rho)
    return Cost(math.inf if rho else 0.0, rho=rho)


def vector_noise_cost(noise: VectorNoise, scale: float, l2: float, grid: float, dimension: int, delta: float) -> Cost:
    """Return the charge of adding noise to a vector of L2 sensitivity `l2` that was first rounded to `grid`."""
    if noise == "laplace" and dimension > 1:
        sensitivity = outward(math.sqrt(dimension) * l2 + training.grid_slack(grid, dimension, "l1"))
    else:
        sensitivity = outward(l2 + training.grid_slack(grid, dimension)) if grid else l2
    if noise == "gaussian":
        return gaussian_cost(sensitivity, scale, delta)
    return Cost(float_at_least(Fraction(sensitivity) / Fraction(scale)))


def check_vector_noise(noise: str, scale: float, grid: float, delta: float) -> None:
    checks.one_of("noise", noise, ("k_norm", "laplace", "gaussian"))
    checks.positive("noise scale", scale)
    checks.not_negative("grid", grid)
    if not 0 <= delta < 1:
        raise ValueError(as_message("delta must lie in [0, 1), got {delta}", delta=delta))
    if delta > 0 and noise != "gaussian":
        raise ValueError(
            as_message("delta must be 0 for {word_noise}, got {delta}", word_noise=NOISE_WORDS[noise], delta=delta)
        )
