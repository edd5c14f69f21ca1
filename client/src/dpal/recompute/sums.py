"""Classifiers from noisy sums alone: prototypes, least squares and discriminants, and a choice between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from dpal.recompute.transcript import Array, Session, Tell, Weights

# A class is taken to have at least this many rows, whatever the noise says.
LEAST_COUNT = 1.0
# No column is taken to vary less than this share of the mean column: noise may hide a column, not make it exact.
LEAST_VARIANCE = 0.05
SPLITS = 8
# Class means whose noise, once split, is longer than this share of a row's spread judge nothing: the choice would fall
# on whatever guesses the frequent classes.
MOST_JUDGING_NOISE = 0.25
# Class means whose noise, once split, is longer than so many times a row's spread say nothing beside a prior.
MOST_LEARNING_NOISE = 256.0
# Numbers drawn for one judgement, so that a thousand classes take seconds.
MOST_DRAWN = 4_000_000
SIMULATED_ROWS = 2_000
TEMPERATURES = np.geomspace(0.05, 20, 33)


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Released sums, of one block or of several: everything computed from them is free.

    Attributes
    ----------
    moments : ndarray of shape (d, d) or None
        Noisy sum of x x^T, symmetric; None where class sums alone were released.
    class_sums : ndarray of shape (K, d)
        Noisy sum of the rows of each class.
    moment_variance : float
        Variance of the noise on the diagonal of `moments`, twice that beside it; 0 without moments.
    class_variance : float
        Variance of the noise on every entry of `class_sums`.
    """

    moments: Array | None
    class_sums: Array
    moment_variance: float
    class_variance: float

    def times(self, weight: float) -> "NoisySums":
        """Return the sums with a public weight, whose square their noise has."""
        return NoisySums(
            None if self.moments is None else weight * self.moments,
            weight * self.class_sums,
            weight**2 * self.moment_variance,
            weight**2 * self.class_variance,
        )

    def plus(self, other: "NoisySums") -> "NoisySums":
        """Return the sums over both blocks of records, which must be disjoint; variances add up as well."""
        if self.class_sums.shape != other.class_sums.shape or (self.moments is None) != (other.moments is None):
            raise ValueError(f"sums of one shape add up, got {self.class_sums.shape} and {other.class_sums.shape}")
        moments = None if self.moments is None or other.moments is None else self.moments + other.moments
        return NoisySums(
            moments,
            self.class_sums + other.class_sums,
            self.moment_variance + other.moment_variance,
            self.class_variance + other.class_variance,
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums read as counts, means and what is known of their spread.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        Rows of each class, pulled towards equal counts as far as noise hides the difference.
    mean : ndarray of shape (d,)
        Mean row.
    deviations : ndarray of shape (K, d)
        Noisy sum of each class's rows less the mean row.
    noise : float
        Variance of the noise on every entry of `deviations`.
    covariance : ndarray of shape (d, d) or None
        Repaired covariance of all rows.
    energy : float
        Mean squared distance of a row from the mean row, > 0.
    """

    counts: Array
    mean: Array
    deviations: Array
    noise: float
    covariance: Array | None
    energy: float


@dataclass(frozen=True, slots=True)
class Scores:
    """A linear classifier: scores are ``rows @ coef.T + intercept``."""

    coef: Array
    intercept: Array

    def of(self, rows: Array) -> Array:
        """Return scores, shape (n, K)."""
        values: Array = rows @ self.coef.T + self.intercept
        return values


def summarise(sums: NoisySums, *, constant: float, row_norm: float) -> Summary:
    """Read noisy sums, whose last column is `constant`; without moments rows are taken to reach `row_norm`."""
    rows, noise = sums.class_sums[:, :-1], sums.class_variance
    counts = pulled_counts(sums.class_sums[:, -1] / constant, noise / constant**2)
    total = counts.sum()
    mean = rows.sum(axis=0) / total
    # The mean of K noisy sums is itself noisy; a mean longer than a row can be is noise.
    mean *= min(1.0, row_norm / max(float(np.linalg.norm(mean)), 1e-12))
    covariance, energy = None, row_norm**2 - float(mean @ mean)
    if sums.moments is not None:
        second = sums.moments[:-1, :-1] / total
        trace = float(np.trace(second)) if sums.moment_variance * len(mean) < (0.1 * total * row_norm**2) ** 2 else None
        energy = (trace if trace is not None else row_norm**2) - float(mean @ mean)
        energy = min(max(energy, 0.05 * row_norm**2), row_norm**2)
        covariance = repaired(second - np.outer(mean, mean), sums.moment_variance / total**2, trace=energy)
    energy = max(energy, 0.05 * row_norm**2)
    return Summary(counts, mean, rows - counts[:, None] * mean, noise, covariance, energy)


def repaired(noisy: Array, variance: float, *, trace: float) -> Array:
    r"""Return a positive definite matrix of the given trace from one with Gaussian noise.

    Notes
    -----
    Noise with variance :math:`v` beside the diagonal fills the spectrum up to :math:`2\sqrt{vd}`; an eigenvalue
    :math:`\lambda` above is shrunk to :math:`\sqrt{\lambda^2 - 4vd}`, the best in squared error, and what trace is left
    is spread evenly below.

    References
    ----------
    .. [1] Gavish, Donoho, "Optimal shrinkage of singular values", 2017 (the symmetric case).
    """
    d = len(noisy)
    values, vectors = np.linalg.eigh(noisy)
    edge = 4 * (variance / 2) * d
    kept = np.where(values > np.sqrt(edge), np.sqrt(np.maximum(values**2 - edge, 0.0)), 0.0)
    kept *= min(1.0, 0.95 * trace / max(float(kept.sum()), 1e-12))
    below = kept < (trace - kept.sum()) / d
    kept[below] = max(trace - float(kept[~below].sum()), 0.01 * trace) / max(int(below.sum()), 1)
    whole: Array = (vectors * kept) @ vectors.T
    return whole


def class_means(summary: Summary, prior: Array | None = None, *, by_column: bool = True) -> tuple[Array, Array]:
    r"""Return posterior means of the classes' deviations from the mean row, and their variances, each (K, d).

    A deviation is :math:`a p_k` plus a normal vector with a variance of each column, where `p` is the prior's row and
    0 without one. The scale `a` and the variances maximise the evidence of the sums: a prior that does not fit gets no
    weight, one that fits well is followed where noise hides the rest. Without `by_column` all columns have one
    variance: what few classes say of a column alone is noise that would be counted twice.
    """
    counts = summary.counts[:, None]
    within = summary.energy / summary.deviations.shape[1]
    sampling = counts * within + summary.noise
    start = np.zeros_like(summary.deviations) if prior is None else prior - prior.mean(axis=0)

    def scale(spread: Array | float) -> float:
        weights = 1 / (counts**2 * spread + sampling)
        bottom = float((weights * (counts * start) ** 2).sum())
        found = float((weights * counts * start * summary.deviations).sum()) / bottom if bottom > 0 else 0.0
        return max(found, 0.0)

    def surprise(log_spread: float) -> float:
        spread = float(np.exp(log_spread))
        variance = counts**2 * spread + sampling
        left = summary.deviations - counts * scale(spread) * start
        return float(0.5 * (left**2 / variance + np.log(variance)).sum())

    high = float(np.log(summary.energy))
    common = float(np.exp(optimize.minimize_scalar(surprise, bounds=(high - 20, high), method="bounded").x))
    left = summary.deviations - counts * scale(common) * start
    # Each column's own variance, pulled towards the common one: few classes say little about a column, and where chance
    # explains how columns differ, they say nothing.
    seen = (left**2 - sampling).sum(axis=0) / (counts**2).sum()
    chance = 2 * float(((counts**2 * common + sampling) ** 2).sum() / (counts**2).sum() ** 2)
    weight = min(len(counts) / (len(counts) + 10), max(1 - chance / max(float(seen.var()), 1e-300), 0.0))
    own = np.maximum(seen, 0.0) if by_column else np.full_like(seen, common)
    spread = np.maximum(weight * own + (1 - weight) * common, LEAST_VARIANCE * common)
    left = summary.deviations - counts * scale(spread) * start
    share = counts**2 * spread / (counts**2 * spread + sampling)
    means: Array = scale(spread) * start + share * left / counts
    return means, spread * (1 - share)


def prototypes(summary: Summary, prior: Array | None = None) -> Scores:
    """Return the classifier of the nearest class mean."""
    means, _ = class_means(summary, prior)
    return _discriminant(summary, means, np.eye(means.shape[1]) / (summary.energy / means.shape[1]))


def discriminants(summary: Summary, prior: Array | None = None) -> Scores:
    """Return linear discriminants: the nearest class mean in the metric of the spread within classes."""
    if summary.covariance is None:
        return prototypes(summary, prior)
    means, _ = class_means(summary, prior)
    between = (means.T * summary.counts) @ means / summary.counts.sum()
    values, vectors = np.linalg.eigh(summary.covariance - between)
    floor = 0.1 * summary.energy / len(values)
    within = np.maximum(values, floor)
    return _discriminant(summary, means, (vectors / within) @ vectors.T)


def least_squares(summary: Summary, prior: Array | None = None) -> Scores:
    """Return the regression of class membership on rows, shrunk by the evidence of the sums."""
    if summary.covariance is None:
        return prototypes(summary, prior)
    total = float(summary.counts.sum())
    values, vectors = np.linalg.eigh(summary.covariance)
    values = np.maximum(values, 1e-9)
    turned = summary.deviations @ vectors / total
    start = np.zeros_like(turned)
    if prior is not None:
        means, _ = class_means(summary, prior)
        start = (summary.counts[:, None] * means) @ vectors / total
    noise = summary.noise / total**2

    def variance(logs: Array) -> tuple[Array, Array]:
        spread, left = np.exp(logs)
        # Directions along which rows vary little are given larger weights beforehand, as in a g-prior.
        explained = spread * values / len(values)
        return explained, explained + values * left / total + noise

    def surprise(logs: Array) -> float:
        _, whole = variance(logs)
        return float(0.5 * ((turned - start) ** 2 / whole + np.log(whole)).sum())

    found = optimize.minimize(surprise, np.array([-3.0, -3.0]), method="Nelder-Mead", options={"maxiter": 200})
    explained, whole = variance(found.x)
    smoothed = start + explained / whole * (turned - start)
    coef = smoothed / values @ vectors.T
    return Scores(coef, summary.counts / total - coef @ summary.mean)


def _discriminant(summary: Summary, means: Array, precision: Array) -> Scores:
    coef = means @ precision
    shares = np.log(summary.counts / summary.counts.sum())
    return Scores(coef, shares - 0.5 * (coef * means).sum(axis=1) - coef @ summary.mean)


Model = Callable[[Summary, Array | None], Scores]
PRIOR = "prior"
MODELS: dict[str, Model] = {"prototypes": prototypes, "discriminants": discriminants, "least_squares": least_squares}


def chosen_model(
    sums: NoisySums, *, constant: float, row_norm: float, prior: Array | None, generator: np.random.Generator
) -> str:
    r"""Return the name of the model that should be right most often, judged from the noisy sums alone.

    Noise of the same law is added to the sums and taken from them, which gives two versions whose noises are
    independent: a model made from one is judged on the other, by normal rows. Without moments there are prototypes
    only, and where noise hides even the class means nothing else is tried. A prior beside which the sums say nothing
    yet stays as it is.
    """
    known = summarise(sums, constant=constant, row_norm=row_norm)
    noise = 2 * known.noise * len(known.mean) / float(known.counts.mean()) ** 2
    if prior is not None and noise > MOST_LEARNING_NOISE * known.energy:
        return PRIOR
    if sums.moments is None or noise > MOST_JUDGING_NOISE * known.energy:
        return "prototypes"
    right = dict.fromkeys(MODELS, 0.0)
    n_classes = len(sums.class_sums)
    draws = generator.normal(size=(min(500, max(10, MOST_DRAWN // n_classes**2)), n_classes))
    for _ in range(SPLITS):
        fitted, judged = split_noise(sums, generator)
        summary = summarise(fitted, constant=constant, row_norm=row_norm)
        for name, model in MODELS.items():
            right[name] += _expected_accuracy(model(summary, prior), judged, constant, draws)
    return max(right, key=lambda name: right[name])


def split_noise(sums: NoisySums, generator: np.random.Generator) -> tuple[NoisySums, NoisySums]:
    """Return two versions of noisy sums with twice the variance each, independent of each other."""
    beside = generator.normal(size=sums.class_sums.shape) * sums.class_variance**0.5
    moments: tuple[Array | None, Array | None] = (None, None)
    if sums.moments is not None:
        square = generator.normal(size=sums.moments.shape) * (sums.moment_variance / 2) ** 0.5
        symmetric = np.triu(square, 1) + np.triu(square, 1).T + np.diag(square.diagonal() * 2**0.5)
        moments = (sums.moments + symmetric, sums.moments - symmetric)
    variances = (2 * sums.moment_variance, 2 * sums.class_variance)
    return (
        NoisySums(moments[0], sums.class_sums + beside, *variances),
        NoisySums(moments[1], sums.class_sums - beside, *variances),
    )


def _expected_accuracy(scores: Scores, sums: NoisySums, constant: float, draws: Array) -> float:
    """Return how often the scores of normal rows with the means and the spread of these sums are right."""
    assert sums.moments is not None
    counts = np.maximum(sums.class_sums[:, -1] / constant, LEAST_COUNT)
    total = float(counts.sum())
    means = sums.class_sums[:, :-1] / counts[:, None]
    coef = scores.coef
    whole = coef @ (sums.moments[:-1, :-1] / total) @ coef.T
    placed = means @ coef.T
    between = (placed.T * counts) @ placed / total
    # Noise on the means makes them look further apart than they are.
    noise = float((sums.class_variance / counts).sum()) / total * (coef @ coef.T)
    values, vectors = np.linalg.eigh(whole - between + noise)
    spread = draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    right = [float((np.argmax(placed[k] + scores.intercept + spread, axis=1) == k).mean()) for k in range(len(counts))]
    return float(np.average(right, weights=counts))


def calibrated(scores: Scores, summary: Summary, prior: Array | None, generator: np.random.Generator) -> Scores:
    """Return scores whose softmax are probabilities, by the temperature that fits rows drawn from what the sums say.

    Rows lie around their class's mean as all rows lie around theirs: the scores were fitted to these very rows, and
    would seem too sure of rows that keep closer. All columns of the means have one variance, since columns chosen for
    their own would be taken at their luckiest.
    """
    means, variances = class_means(summary, prior, by_column=False)
    shares = summary.counts / summary.counts.sum()
    drawn = generator.choice(len(shares), size=SIMULATED_ROWS, p=shares)
    truth = means + generator.normal(size=means.shape) * np.sqrt(variances)
    around = generator.normal(size=(SIMULATED_ROWS, means.shape[1]))
    if summary.covariance is None:
        around *= (summary.energy / means.shape[1]) ** 0.5
    else:
        around @= np.linalg.cholesky(summary.covariance).T
    rows = summary.mean + truth[drawn] + around
    values = scores.of(rows)
    unit = max(float(values.std()), 1e-12)

    def surprise(temperature: float) -> float:
        logits = values * (temperature / unit)
        return float((logsumexp(logits, axis=1) - logits[np.arange(len(drawn)), drawn]).mean())

    best = min(TEMPERATURES, key=surprise) / unit
    return Scores(scores.coef * best, scores.intercept * best)


def pulled_counts(noisy: Array, variance: float) -> Array:
    """Return noisy counts pulled towards their mean as far as noise hides the difference, at least one each."""
    mean = max(float(noisy.mean()), LEAST_COUNT)
    spread = max(float(((noisy - mean) ** 2).mean()) - variance, 0.0)
    pull = spread / (spread + variance) if variance > 0 else 1.0
    return np.maximum(mean + pull * (noisy - mean), LEAST_COUNT)


def sums(parameters: Mapping[str, Any], session: Session, tell: Tell) -> Weights:
    """Make the best model of noisy sums, with the parameters of `released_sums`, `all_sums` and `best_model`.

    The session answers `moments`, `class_sums` and `seed`.
    """
    return best_model(parameters, all_sums(parameters, session), session.ask("seed"))[1]


def released_sums(parameters: Mapping[str, Any], session: Session) -> NoisySums:
    """Return what one release answers, by `dimension`, `moment_sigma` and `class_sigma`."""
    moments: Array | None = None
    if parameters["moment_sigma"]:
        d: int = parameters["dimension"]
        moments = np.zeros((d, d))
        moments[np.triu_indices(d)] = session.ask("moments")
        moments += np.triu(moments, 1).T
    class_sums = session.ask("class_sums")
    return NoisySums(moments, class_sums, parameters["moment_sigma"] ** 2, parameters["class_sigma"] ** 2)


def all_sums(parameters: Mapping[str, Any], session: Session) -> NoisySums:
    """Return the released sums, with `own_weight`, and those of `earlier` blocks, which may be None."""
    own, earlier = released_sums(parameters, session), parameters["earlier"]
    return own if earlier is None else own.times(parameters["own_weight"]).plus(NoisySums(**earlier))


def best_model(parameters: Mapping[str, Any], sums: NoisySums, seed: Array) -> tuple[str, Weights]:
    """Return the name of the model that is made and its weights.

    The parameters are `model`, a name or "auto"; `constant`, the column beside the rows; `row_norm`, bound of rows
    without it; and `prior`, None or a mapping with `coef` and `intercept`. `seed` is public chance, which splits noise
    and draws rows.
    """
    # Threads would add up in another order with every number of cores.
    with threadpool_limits(limits=1, user_api="blas"):
        return _best_model(parameters, sums, generator_of(seed))


def _best_model(parameters: Mapping[str, Any], sums: NoisySums, generator: np.random.Generator) -> tuple[str, Weights]:
    prior = parameters["prior"]
    shape = {"constant": parameters["constant"], "row_norm": parameters["row_norm"]}
    n_classes = len(sums.class_sums)
    means = prior_means(prior, n_classes, sums.class_sums.shape[1] - 1)
    name: str = parameters["model"]
    if name == "auto":
        name = chosen_model(sums, prior=means, generator=generator, **shape)
    if name == PRIOR and prior is not None:
        return name, Weights(prior["coef"], prior["intercept"])
    summary = summarise(sums, **shape)
    scores = calibrated(MODELS[name](summary, means), summary, means, generator)
    if n_classes == 2:
        return name, Weights(np.diff(scores.coef, axis=0), np.diff(scores.intercept))
    return name, Weights(scores.coef, scores.intercept)


def generator_of(seed: Array) -> np.random.Generator:
    return np.random.default_rng([int(word) for word in seed])


def prior_means(prior: Mapping[str, Array] | None, n_classes: int, n_features: int) -> Array | None:
    """Return the directions of a prior, one a class."""
    if prior is None:
        return None
    coef = prior["coef"]
    if coef.shape != (1 if n_classes == 2 else n_classes, n_features):
        raise ValueError(f"prior must have weights for {n_classes} classes and {n_features} columns")
    return np.vstack([-coef, coef]) / 2 if n_classes == 2 else coef
