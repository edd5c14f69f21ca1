"""Shares of classes with intervals, from noisy counts of predictions over a pool and of labels on a secret sample."""

# With counts H_k of predictions, and of sampled records b_k whose label alone and a_k whose
# prediction alone is k, the share of class k is H_k/H + (b_k - a_k)/n (prediction-powered inference [1]);
# predictions may weigh less than 1 [2].
# Everything here is computed from released counts and public numbers.
# [1] Angelopoulos, Bates, Fannjiang, Jordan, Zrnic, "Prediction-powered inference", Science 382, 2023.
# [2] Angelopoulos, Duchi, Zrnic, "PPI++: efficient prediction-powered inference", 2023.

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.counts import ClassCountsEvent
from privacy.accounting.screens import inner_epsilon

Floats = NDArray[np.float64]
# Two-sided 95 %.
WIDTH = 1.96
# Two more records of either kind keep intervals of rare classes from collapsing (Agresti, Coull 1998).
ADDED = 2.0
# A model about which nothing public is known.
LIKELY_ACCURACY = 0.75
# Parts of epsilon that `SharesPlan.split` goes through.
SPLITS = 40


@dataclass(frozen=True, slots=True)
class Shares:
    """Estimated shares, each array of shape (groups, classes + 1); the last column is "no label".

    Attributes
    ----------
    values, low, high : ndarray
        Estimates and the ends of their 95 % intervals, in [0, 1].
    """

    values: Floats
    low: Floats
    high: Floats


def noise_variance(event: ClassCountsEvent) -> float:
    """Return the variance of the discrete Laplace noise on one count."""
    p = math.exp(-1 / event.scale)
    return 2 * p / (1 - p) ** 2


def _shares(values: Floats, variance: Floats) -> Shares:
    half = WIDTH * np.sqrt(variance)
    low, high = np.clip(values - half, 0.0, 1.0), np.clip(values + half, 0.0, 1.0)
    return Shares(np.clip(values, 0.0, 1.0), low, high)


def labels_alone(counts: Floats, *, rate: float, variance: float) -> Shares:
    """Return the shares that counts of labels show.

    Parameters
    ----------
    counts : ndarray of shape (groups, classes + 1)
        Noisy counts of labels on the sample.
    rate : float
        Public probability with which a record is sampled.
    variance : float
        Of the noise on one count.
    """
    n = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    values = counts / n
    likely = (np.maximum(counts, 0.0) + ADDED) / (n + 2 * ADDED)
    likely = np.minimum(likely, 1.0)
    sampling = (1 - rate) * likely * (1 - likely) / n
    return _shares(values, sampling + _ratio_noise(values, n, variance))


def _ratio_noise(values: Floats, n: Floats, variance: float) -> Floats:
    """Return the noise of counts divided by their noisy sum."""
    spread = (1 - values) ** 2 + values**2 * (values.shape[1] - 1)
    noise: Floats = variance * spread / n**2
    return noise


def model_alone(pool: Floats, *, variance: float) -> Shares:
    """Return the shares of predictions over the pool; their interval covers noise, not errors of the model."""
    total = np.maximum(pool.sum(axis=1, keepdims=True), 1.0)
    values = pool / total
    shares = _shares(values, _ratio_noise(values, total, variance))
    return Shares(*(np.pad(part, ((0, 0), (0, 1))) for part in (shares.values, shares.low, shares.high)))


def with_model(
    pool: Floats, compared: Floats, *, weight: float, rate: float, pool_variance: float, variance: float
) -> Shares:
    """Return shares of predictions over the pool, corrected by labels on the sample.

    Parameters
    ----------
    pool : ndarray of shape (groups, classes)
        Noisy counts of predictions.
    compared : ndarray of shape (groups, 3, classes + 1)
        Noisy counts on the sample: agreed, predicted alone, label alone.
    weight : float
        Of the predictions, public, in [0, 1]; the model's accuracy gives least variance, and every weight is unbiased.
    rate : float
        Public probability with which a record is sampled.
    pool_variance, variance : float
        Of the noise on one count of either.
    """
    agreed, predicted, labelled = compared[:, 0], compared[:, 1], compared[:, 2]
    total = np.maximum(pool.sum(axis=1, keepdims=True), 1.0)
    said = np.pad(pool / total, ((0, 0), (0, 1)))
    n = np.maximum((agreed + labelled).sum(axis=1, keepdims=True), 1.0)
    moved = ((1 - weight) * agreed + labelled - weight * predicted) / n
    squares = (1 - weight) ** 2 * np.maximum(agreed, 0.0) + np.maximum(labelled, 0.0)
    squares = (squares + weight**2 * np.maximum(predicted, 0.0) + ADDED) / n
    sampling = (1 - rate) * np.maximum(squares - moved**2, 0.0) / n
    noise = _cells(weight) * variance / n**2 + weight**2 * _ratio_noise(said, total, pool_variance)
    return _shares(weight * said + moved, sampling + noise)


def _cells(weight: float) -> float:
    """Return the variance of a correction of three noisy counts, in that of one."""
    return (1 - weight) ** 2 + 1 + weight**2


@dataclass(frozen=True, slots=True)
class SharesPlan:
    """Public sizes of one ask, and the half width of its intervals that they let expect.

    Attributes
    ----------
    pool_size : int
        Public number of slots.
    rate : float
        Public rate of the secret sample, in (0, 1].
    n_classes : int
        Classes of the model.
    accuracy : float
        Public guess of how often the model is right, in [0, 1].
    """

    pool_size: int
    rate: float
    n_classes: int
    accuracy: float = LIKELY_ACCURACY

    @property
    def labels(self) -> float:
        """Expected number of sampled records."""
        return max(1.0, self.rate * self.pool_size)

    def width_alone(self, epsilon: float) -> float:
        """Return the half width for labels alone and a class of average size; `epsilon` is that inside the sample."""
        share = (self.labels / self.n_classes + ADDED) / (self.labels + 2 * ADDED)
        sampling = (1 - self.rate) * share * (1 - share) / self.labels
        return WIDTH * math.sqrt(sampling + 2 / (epsilon * self.labels) ** 2)

    def width_with_model(self, epsilon: float, pool_epsilon: float) -> float:
        """Return the half width with the model."""
        a = self.accuracy
        residual = (1 - a) * (1 + a) / self.n_classes - ((1 - a) / self.n_classes) ** 2
        sampling = (1 - self.rate) * (residual + ADDED / self.labels) / self.labels
        sample = 2 * _cells(a) * (2 / (epsilon * self.labels)) ** 2
        return WIDTH * math.sqrt(sampling + sample + 2 * (a / (pool_epsilon * self.pool_size)) ** 2)

    def model_helps(self, epsilon: float, pool_epsilon: float) -> bool:
        """Say whether the model narrows the intervals; public sizes decide, and no record does."""
        return self.width_with_model(epsilon, pool_epsilon) < self.width_alone(epsilon)

    def pool_epsilon(self, epsilon: float) -> float:
        """Return the least epsilon over the pool, in hundredths, that widens intervals by a fiftieth at most."""
        best = self.width_with_model(epsilon, 1.0)
        steps = (step / 100 for step in range(1, 100))
        return next((step for step in steps if self.width_with_model(epsilon, step) <= 1.02 * best), 1.0)

    def split(self, epsilon: float) -> tuple[float, float]:
        """Return the parts of a whole epsilon for the pool, and inside the sample, that make intervals narrowest."""

        def parts(place: int) -> tuple[float, float]:
            pool_epsilon = epsilon * place / SPLITS
            return pool_epsilon, inner_epsilon(epsilon - pool_epsilon, self.rate)

        return min(map(parts, range(1, SPLITS)), key=lambda both: self.width_with_model(both[1], both[0]))

    def labels_for(self, width: float, epsilon: float) -> int | None:
        """Return the least number of labels whose intervals are at most so wide on either side; None if no number is.

        Parameters
        ----------
        width : float
            Wanted half width, > 0.
        epsilon : float
            Of the whole ask.
        """
        low, high = 0, self.pool_size
        if self._narrowest(high, epsilon) > width:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._narrowest(middle, epsilon) <= width else (middle, high)
        return high

    def _narrowest(self, labels: int, epsilon: float) -> float:
        plan = SharesPlan(self.pool_size, labels / self.pool_size, self.n_classes, self.accuracy)
        pool_epsilon, inside = plan.split(epsilon)
        return min(plan.width_alone(inner_epsilon(epsilon, plan.rate)), plan.width_with_model(inside, pool_epsilon))
