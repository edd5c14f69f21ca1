"""Online gradient descent on one clipped, noisy gradient of each user."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

from learner.estimators.descriptions import PublicWords
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier, project_to_ball
from learner.linear_model import LinearModel
from privacy.accounting import checks
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.events import MutualInformationOgdEvent
from privacy.arrays import Array
from privacy.mechanisms.discrete import DiscreteGaussian, check_grid
from privacy.mechanisms.randomness import RandomSource

# The exact sampler is called once for this many users; its noise does not depend on them.
NOISE_USERS = 1024


class NoisyGradientDescent(StreamingLinearClassifier):
    """What full-information and bandit descent share: noise of each user, the learner's lazy step, the statement."""

    sigma: float
    radius: float
    horizon: int
    delta: float
    grid: float

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start anew and learn from each row once, in order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of any length: what they contribute is clipped.
        y : array-like of shape (n_samples,)
            Labels among the classes.

        Raises
        ------
        ValueError
            If a parameter, a row or a label is not as declared.
        """
        self._learn(*self._examples(X, y, classes=None, begin=True))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: Any = None) -> Self:
        """Learn from further rows, each of a user who has contributed nothing before.

        `classes` declares the classes where the constructor does not; it is needed in the first call only.
        """
        self._learn(*self._examples(X, y, classes=classes, begin=False))
        return self

    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        """Take one step for each answer, and one of noise alone for each batch without any."""
        fresh = batches[len(batches) - new :]
        for silent, own in stretches([len(batch.classes) for batch in fresh]):
            if silent:
                self.pass_over(silent)
            else:
                stretch = fresh[own]
                rows = np.concatenate([batch.rows for batch in stretch])
                self.partial_fit(rows, np.concatenate([batch.classes for batch in stretch]))
        return self

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return version 0 where examples make it."""
        return words.model() if words.enough_examples else None

    def pass_over(self, users: int = 1) -> Self:
        """Take a step of noise alone for each user who gave no answer, so that no step tells whether there was one."""
        for start in range(0, users, NOISE_USERS):
            for steps in self._noise(min(NOISE_USERS, users - start)):
                self._take(np.zeros_like(self.weights_), steps)
        self._publish()
        return self

    def statement(self, n_features: int) -> str:
        """Return in one line what a user is promised: the differential privacy always, the nats beside it."""
        cost = self.event_for(n_features).cost()
        epsilon = zcdp_epsilon(cost.rho, self.delta)
        return (
            f"epsilon {min(epsilon, cost.epsilon):.4g} at delta {self.delta:.1g} (rho {cost.rho:.4g}) for each user; "
            f"mutual information at most {cost.mutual_information:.4g} nats, which bounds no single user's risk"
        )

    @abstractmethod
    def _learn(self, rows: NDArray[np.floating], places: NDArray[np.intp]) -> None:
        """Take one step for each user and publish the outcome."""

    @abstractmethod
    def _contribution_bound(self, dimension: int) -> float:
        """Return the norm to which a user's contribution is clipped."""

    def _noise(self, users: int) -> NDArray[np.int64]:
        """Return exact discrete Gaussian noise in steps of the grid, shape (users, n_vectors, dimension)."""
        shape = (users, *self.weights_.shape)
        zeros = np.zeros(math.prod(shape), dtype=np.int64)
        return DiscreteGaussian(self.sigma / self.grid).release(zeros, rng=self._source).reshape(shape)

    def _take(self, gradient: Array, noise: NDArray[np.int64]) -> None:
        """Clip a contribution, round it to the grid, add the noise and take the learner's step."""
        # Rounding lengthens a vector by at most half a step for each coordinate, so it is clipped to that much less.
        room = self._contribution_bound(gradient.size) * (1 - 2.0**-40) - self.grid * math.sqrt(gradient.size)
        length = float(np.linalg.norm(gradient))
        clipped = gradient if length <= room else gradient * (room / length)
        self._theta -= (np.rint(clipped / self.grid) + noise) * self.grid
        self._count(project_to_ball(self._step_size() * self._theta, self._reach()))

    def _start_at(self, weights: Array) -> None:
        """Start the lazy sum where it leads to the weights; what one user adds to it is bounded and noisy as ever."""
        super()._start_at(weights)
        self._theta = weights / self._step_size()

    def _reach(self) -> float:
        """Return the radius of the ball that holds the weights."""
        return float(self.radius)

    def _step_size(self) -> float:
        r"""Return :math:`B / \sqrt{(G^2 + D \sigma^2) T}`, which balances both terms of the regret bound."""
        dimension = self.weights_.size
        power = self._contribution_bound(dimension) ** 2 + dimension * self.sigma**2
        return float(self.radius) / math.sqrt(power * self.horizon)

    def _check_parameters(self) -> None:
        self._check_positive("sigma", "radius", "intercept_scaling")
        if self.horizon < 1:
            raise ValueError(f"horizon must be >= 1, got {self.horizon}")
        checks.delta_in_open_interval("delta", self.delta)
        check_grid(self.grid)
        if self.sigma < 2**10 * self.grid:
            raise ValueError(f"sigma must be at least 1024 steps of the grid {self.grid}, got {self.sigma}")


@dataclass(eq=False, repr=False)
class MutualInformationOGD(NoisyGradientDescent):
    r"""Descend along :math:`\tilde z_t = \mathrm{clip}_L(\nabla f_t(w_t)) + \mathcal N(0, \sigma^2 I)`, user by user.

    The loss is logistic, for more than two classes softmax cross-entropy. The learner sees noisy gradients only:
    :math:`\theta_{t+1} = \theta_t - \tilde z_t` and :math:`w_{t+1} = \Pi_B(\eta \theta_{t+1})`. One user's gradient
    tells at most :math:`(D/2)\ln(1 + L^2/(D\sigma^2))` nats; that alone is not differential privacy, which is
    charged as :math:`\rho = 2L^2/\sigma^2`.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of each coordinate, > 0.
    lipschitz : float
        Norm L > 0 to which a gradient is clipped; the norm bound of the rows clips none of two classes.
    radius : float
        Radius B > 0 of the ball of weights.
    horizon : int
        Expected number T >= 1 of users, a public number that sets the step size.
    delta : float
        In (0, 1): where epsilon is stated and charged in accounts that count it.
    classes, fit_intercept, intercept_scaling
        As in `PrivateLogisticRegression`; `classes` may instead be declared in the first `partial_fit`.
    average : bool
        Predict with the average of all iterates, to which the regret bound speaks, or with the last.
    grid : float
        Spacing, a power of two, of gradients and noise.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_, intercept_, classes_, weights_, updates_, privacy_event_, simulated_
        See `StreamingLinearClassifier`.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Algorithm 1, Theorems 1 and 2.
    """

    sigma: float = 1.0
    _: KW_ONLY
    lipschitz: float = 1.0
    radius: float = 5.0
    horizon: int = 10_000
    delta: float = 1e-6
    classes: Any = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    average: bool = True
    grid: float = 2.0**-30
    random_state: RandomSource | np.random.Generator | int | None = None

    def _event(self, n_features: int, n_classes: int) -> MutualInformationOgdEvent:
        self._check_positive("lipschitz")
        self._check_parameters()
        dimension = self._n_vectors(n_classes) * self._width(n_features)
        return MutualInformationOgdEvent(dimension, float(self.lipschitz), float(self.sigma), float(self.delta))

    def _contribution_bound(self, dimension: int) -> float:
        return float(self.lipschitz)

    def _learn(self, rows: NDArray[np.floating], places: NDArray[np.intp]) -> None:
        wide = self._extended(rows)
        for start in range(0, len(wide), NOISE_USERS):
            block, labels = wide[start : start + NOISE_USERS], places[start : start + NOISE_USERS]
            noise = self._noise(len(block))
            for row, place, steps in zip(block, labels, noise, strict=True):
                self._take(self._gradient(row, int(place)), steps)
        self._publish()

    def _gradient(self, row: Array, place: int) -> Array:
        """Return the gradient of one user's loss at the current weights, of their shape."""
        scores = self.weights_ @ row
        if len(scores) == 1:
            sign = 1.0 if place == 1 else -1.0
            gradient: Array = -sign * expit(-sign * scores[0]) * row[None]
        else:
            pulls = softmax(scores)
            pulls[place] -= 1
            gradient = np.outer(pulls, row)
        return gradient


class OnlineGradientBaseline(MutualInformationOGD):
    """Take the steps of `MutualInformationOGD` without noise: for comparison, never for release."""

    releasable: ClassVar[bool] = False

    def _noise(self, users: int) -> NDArray[np.int64]:
        return np.zeros((users, *self.weights_.shape), dtype=np.int64)


def stretches(counts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Join neighbouring batches that have answers, and those that have none.

    Parameters
    ----------
    counts : sequence of int
        Answers of each batch, >= 0.

    Yields
    ------
    tuple of int and slice
        How many batches without an answer were joined, 0 for batches with some; and which of all batches they are.
    """
    place = 0
    for silent, stretch in groupby(counts, key=lambda count: count == 0):
        size = len(list(stretch))
        yield (size if silent else 0), slice(place, place := place + size)
