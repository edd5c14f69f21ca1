"""Information of a noisy gradient about the user who sent it, by Monte Carlo."""

import math

import numpy as np
from scipy.special import logsumexp, ndtr

from privacy.arrays import Array

BLOCK_DRAWS = 250


def information(gradients: Array, sigma: float, *, draws: int, rng: np.random.Generator) -> Array:
    r"""Return draws whose mean is the mutual information of a user, uniform among n, and their noisy gradient.

    Each draw is :math:`\ln p(\tilde z \mid z_k) - \ln \frac1n \sum_j p(\tilde z \mid z_j)` for a random user k:
    unbiased for this population, and never more than ln n.
    """
    found = []
    squares = (gradients**2).sum(axis=1)
    for start in range(0, draws, BLOCK_DRAWS):
        count = min(BLOCK_DRAWS, draws - start)
        users = rng.integers(0, len(gradients), size=count)
        seen = gradients[users] + sigma * rng.standard_normal((count, gradients.shape[1]))
        # The square of what was seen is in every exponent and cancels.
        exponents = (seen @ gradients.T - squares / 2) / sigma**2
        own = exponents[np.arange(count), users]
        found.append(own - logsumexp(exponents, axis=1) + math.log(len(gradients)))
    return np.concatenate(found)


def bandit_information(
    answers: Array, directions: Array, scale: float, sigma: float, *, draws: int, rng: np.random.Generator
) -> Array:
    r"""As `information` for one-point estimates :math:`s\,\varphi_k(e)\,e`, the direction unknown to who looks."""
    sent = scale * answers[:, :, None] * directions
    squares = (sent**2).sum(axis=2)
    found = np.empty(draws)
    for place in range(draws):
        user, direction = rng.integers(0, answers.shape[0]), rng.integers(0, answers.shape[1])
        seen = sent[user, direction] + sigma * rng.standard_normal(directions.shape[1])
        exponents = logsumexp((sent @ seen - squares / 2) / sigma**2, axis=1)
        found[place] = exponents[user] - logsumexp(exponents) + math.log(len(answers))
    return found


def two_users_told_apart(distance: float, sigma: float) -> float:
    """Return how often the best guess is right which of two equally likely users sent a noisy gradient."""
    return float(ndtr(distance / (2 * sigma)))
