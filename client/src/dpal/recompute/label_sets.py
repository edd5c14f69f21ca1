"""Logistic model of each class from noisy sums alone, where a record may have several classes or none."""

# The last of the sums are those of all rows: without them nobody could tell how many rows a class lacks.

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from threadpoolctl import threadpool_limits

from dpal.recompute.sums import (
    LEAST_COUNT,
    SPLITS,
    NoisySums,
    Scores,
    Summary,
    all_sums,
    class_means,
    generator_of,
    prior_means,
    pulled_counts,
    repaired,
    split_noise,
)
from dpal.recompute.transcript import Array, Session, Tell, Weights

# Along no direction are rows taken to vary less than this share of the mean column.
LEAST_SPREAD: Final = 0.1


@dataclass(frozen=True, slots=True)
class SetSummary:
    """Sums read as counts and means of the rows that have a class, beside those of all rows.

    Attributes
    ----------
    known : Summary
        Of the rows that have each class; `deviations` are from the mean of all rows.
    shares : ndarray of shape (K,)
        Share of all rows that have each class, in (0, 1).
    noisy : ndarray of shape (d, d) or None
        Covariance of all rows as it was released, with its noise.
    noisy_variance : float
        Variance of that noise on the diagonal.
    """

    known: Summary
    shares: Array
    noisy: Array | None
    noisy_variance: float


def summarise_sets(sums: NoisySums, *, constant: float, row_norm: float) -> SetSummary:
    """Read noisy sums whose last column is `constant` and last row sums over all; without moments rows reach
    `row_norm`.
    """
    noise, everything = sums.class_variance, sums.class_sums[-1]
    rows = sums.class_sums[:-1, :-1]
    counts = pulled_counts(sums.class_sums[:-1, -1] / constant, noise / constant**2)
    # Of every class some row lacks it.
    total = max(float(everything[-1]) / constant, float(counts.max()) + LEAST_COUNT)
    mean = everything[:-1] / total
    mean = mean * min(1.0, row_norm / max(float(np.linalg.norm(mean)), 1e-12))
    energy, covariance, noisy = row_norm**2 - float(mean @ mean), None, None
    if sums.moments is not None:
        second = sums.moments[:-1, :-1] / total
        readable = sums.moment_variance * len(mean) < (0.1 * total * row_norm**2) ** 2
        energy = (float(np.trace(second)) if readable else row_norm**2) - float(mean @ mean)
        energy = min(max(energy, 0.05 * row_norm**2), row_norm**2)
        noisy = second - np.outer(mean, mean)
        covariance = repaired(noisy, sums.moment_variance / total**2, trace=energy)
    known = Summary(counts, mean, rows - counts[:, None] * mean, noise, covariance, max(energy, 0.05 * row_norm**2))
    return SetSummary(known, counts / total, noisy, sums.moment_variance / total**2)


def nearest(summary: Summary, means: Array) -> Array:
    """Return the directions of the classes' means."""
    return means


def discriminating(summary: Summary, means: Array) -> Array:
    """Return the directions of the means in the metric of the rows' spread: that of least squares, too."""
    if summary.covariance is None:
        return means
    values, vectors = np.linalg.eigh(summary.covariance)
    values = np.maximum(values, LEAST_SPREAD * summary.energy / len(values))
    turned: Array = (means @ vectors / values) @ vectors.T
    return turned


Direction = Callable[[Summary, Array], Array]
DIRECTIONS: Final[dict[str, Direction]] = {"prototypes": nearest, "discriminants": discriminating}


def set_scores(summary: SetSummary, direction: Direction, prior: Array | None = None) -> Scores:
    r"""Return scores whose logistic values are probabilities, one class apart from the others.

    Along a direction :math:`w` the rows that have a class and those that lack it are taken to be normal with one
    variance :math:`v` and means :math:`\delta` apart, so the logit is
    :math:`w^\top (x - m)\,\delta / v + \ln(p / (1 - p))` with `m` the middle between the means. What is not known of
    the means adds to `v`: where noise hides a class its probability stays near its share.
    """
    known, shares = summary.known, summary.shares
    means, variances = class_means(known, prior, by_column=False)
    weights = direction(known, means)
    odds = shares / (1 - shares)
    along = (weights * means).sum(axis=1)
    spread, trusted = spreads(summary, weights)
    # The part of what was seen along a direction that lies between the two means; of a guess nothing does.
    within = np.maximum(spread - trusted * odds * along**2, LEAST_SPREAD * spread)
    within += (weights**2 * variances).sum(axis=1) / (1 - shares) ** 2
    slope = np.maximum(along / (1 - shares), 0.0) / np.maximum(within, 1e-12)
    middle = weights @ known.mean + along * (1 - odds) / 2
    return Scores(weights * slope[:, None], np.log(odds) - slope * middle)


def spreads(summary: SetSummary, weights: Array) -> tuple[Array, Array]:
    """Return the variance of all rows along each direction, and how far it was seen and not guessed, in [0, 1].

    Directions come from the class sums, whose noise is independent of that of the moments, so the moments say without
    bias how rows vary along them. Guessed is that they vary alike along all.
    """
    norms: Array = (weights**2).sum(axis=1)
    guessed = np.maximum(norms * summary.known.energy / weights.shape[1], 1e-12)
    if summary.noisy is None:
        return guessed, np.zeros_like(guessed)
    seen = np.einsum("kd,de,ke->k", weights, summary.noisy, weights, optimize=True)
    trusted = guessed**2 / (guessed**2 + summary.noisy_variance * norms**2)
    return np.maximum((1 - trusted) * guessed + trusted * seen, LEAST_SPREAD * guessed), trusted


def chosen_direction(
    sums: NoisySums, *, constant: float, row_norm: float, prior: Array | None, generator: np.random.Generator
) -> str:
    """Return the name of the direction that tells most rows apart, judged from the noisy sums alone.

    Noise of the same law is added to the sums and taken from them, which gives two versions whose noises are
    independent: directions of one are judged by how far apart the classes lie along them in the other.
    """
    if sums.moments is None:
        return "prototypes"
    apart = dict.fromkeys(DIRECTIONS, 0.0)
    for _ in range(SPLITS):
        fitted, judged = split_noise(sums, generator)
        summary = summarise_sets(fitted, constant=constant, row_norm=row_norm)
        other = summarise_sets(judged, constant=constant, row_norm=row_norm)
        means, _ = class_means(summary.known, prior, by_column=False)
        for name, direction in DIRECTIONS.items():
            weights = direction(summary.known, means)
            seen = (weights * other.known.deviations).sum(axis=1)
            apart[name] += float((seen / np.sqrt(spreads(other, weights)[0])).sum())
    return max(apart, key=lambda name: apart[name])


def label_sets(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Make a model of each class of noisy sums; parameters and queries are those of `dpal.recompute.sums.sums`."""
    return best_sets(parameters, all_sums(parameters, session), session.ask("seed"))[1]


def best_sets(parameters: Mapping[str, Any], sums: NoisySums, seed: Array) -> tuple[str, Weights]:
    """Return the name of the direction along which classes are told apart, and the weights."""
    shape = {"constant": parameters["constant"], "row_norm": parameters["row_norm"]}
    n_classes, n_features = len(sums.class_sums) - 1, sums.class_sums.shape[1] - 1
    prior = parameters["prior"]
    own = prior is not None and prior["coef"].shape == (n_classes, n_features)
    means = prior["coef"] if own else prior_means(prior, n_classes, n_features)
    name: str = parameters["model"]
    # Threads would add up in another order with every number of cores.
    with threadpool_limits(limits=1, user_api="blas"):
        if name == "auto":
            name = chosen_direction(sums, prior=means, generator=generator_of(seed), **shape)
        scores = set_scores(summarise_sets(sums, **shape), DIRECTIONS[name], means)
    return name, Weights(scores.coef, scores.intercept)
