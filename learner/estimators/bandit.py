"""Online gradient descent from confirmations: each user only says whether the model's guess was right."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from learner.estimators.descriptions import PublicWords
from learner.estimators.mi_ogd import NOISE_USERS, NoisyGradientDescent, stretches
from learner.estimators.streaming import Guess, GuessingClassifier
from learner.linear_model import LinearModel
from privacy.accounting.events import BanditOgdEvent
from privacy.accounting.mutual_information import bandit_gradient_bound
from privacy.arrays import Array
from privacy.mechanisms.randomness import RandomSource

# What a guess costs: centring on zero halves the bound of the loss and moves no gradient.
LOSS_BOUND = 0.5
ENOUGH_ANSWERS = 100_000
# Moved weights held at once while rows are guessed.
GUESSED_NUMBERS = 2**20


class FewAnswersWarning(UserWarning):
    """The model was fitted on too few confirmations to expect more than chance."""


@dataclass(eq=False, repr=False)
class BanditMutualInformationOGD(NoisyGradientDescent, GuessingClassifier):
    r"""Learn from "right" and "wrong": the weights are moved by :math:`\delta e`, the guess is answered, z follows.

    A user sees the guess of :math:`w_t + \delta e_t` for a uniform unit vector e and confirms or rejects it. The
    loss :math:`\varphi` is -1/2 or 1/2, the one-point estimate :math:`z = (D/\delta)\,\varphi\,e` follows the
    gradient of the smoothed loss, and the learner gets :math:`z + \mathcal N(0, \sigma^2 I)`. One user tells at most
    :math:`(D/2)\ln(1 + D F^2/(\delta\sigma)^2)` nats with F = 1/2; charged is :math:`\rho = 2 (DF/\delta)^2/\sigma^2`.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of each coordinate, > 0.
    radius : float
        Radius B > 0 of the ball that holds the moved weights.
    exploration : float, optional
        :math:`\delta` in (0, B); by default :math:`B T^{-1/4}`. The weights stay within :math:`B - \delta`.
    horizon : int
        Expected number T >= 1 of answers, a public number that sets step size and exploration.
    delta : float
        In (0, 1): where epsilon is stated and charged in accounts that count it.
    classes, fit_intercept, intercept_scaling, average, grid, random_state
        As in `MutualInformationOGD`.

    Attributes
    ----------
    coef_, intercept_, classes_, weights_, updates_, privacy_event_, simulated_
        See `StreamingLinearClassifier`.

    Warns
    -----
    FewAnswersWarning
        From `fit` with fewer than 100,000 answers: a one-point estimate has D times the noise of a gradient.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Algorithm 2, Theorems 3 and 4 (whose F over eta should read F over delta).
    .. [2] Flaxman, Kalai, McMahan, "Online convex optimization in the bandit setting", 2005.
    """

    sigma: float = 1.0
    _: KW_ONLY
    radius: float = 5.0
    exploration: float | None = None
    horizon: int = ENOUGH_ANSWERS
    delta: float = 1e-6
    classes: Any = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    average: bool = True
    grid: float = 2.0**-30
    random_state: RandomSource | np.random.Generator | int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start anew and play the game with each row once, in order: guess, hear right or wrong, step."""
        super().fit(X, y)
        if self.updates_ < ENOUGH_ANSWERS:
            warnings.warn(
                f"{self.updates_} confirmations are few: below {ENOUGH_ANSWERS} expect little more than chance",
                FewAnswersWarning,
                stacklevel=2,
            )
        return self

    def _start_at(self, weights: Array) -> None:
        raise ValueError("learning from confirmations starts from zero weights")

    def guess(self, row: ArrayLike) -> Guess:
        """Draw a direction and return the class of one row, shape (n_features,), at the moved weights."""
        return self.guess_all(np.asarray(row, dtype=np.float64)[None])[0]

    def guess_all(self, rows: NDArray[np.floating]) -> list[Guess]:
        """Draw a direction for each row, shape (n, n_features), and return its class at the weights moved by that."""
        guesses: list[Guess] = []
        at_once = max(1, GUESSED_NUMBERS // self.weights_.size)
        for start in range(0, len(rows), at_once):
            wide = self._extended(rows[start : start + at_once])
            directions = self._directions(len(wide))
            scores = np.einsum("nvd,nd->nv", self.weights_ + self._exploration() * directions, wide)
            places = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
            moved = directions.reshape(len(wide), -1).tolist()
            guesses += [Guess(int(place), tuple(parts)) for place, parts in zip(places, moved, strict=True)]
        return guesses

    def learn(self, guess: Guess, *, confirmed: bool) -> Self:
        """Take the answer to a guess; answers may come in any order, each once."""
        return self.learn_all(np.array(guess.direction)[None], [confirmed])

    def learn_guesses(self, directions: ArrayLike, confirmed: Sequence[bool], counts: Sequence[int]) -> Self:
        """Take the answers to guesses batch by batch, and a step of noise alone for each batch without any."""
        moved, ends = np.asarray(directions, dtype=np.float64), [0, *accumulate(counts)]
        for silent, own in stretches(counts):
            if silent:
                self.pass_over(silent)
            else:
                answers = slice(ends[own.start], ends[own.stop])
                self.learn_all(moved[answers], confirmed[answers])
        return self

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return nothing: steps from confirmations hardly leave a start, and it would pass for something learned."""
        return None

    def learn_all(self, directions: Array, confirmed: Sequence[bool]) -> Self:
        """Take the answers to guesses in this order; `directions`, shape (n, D), are those that led to them."""
        moved = directions.reshape(len(confirmed), *self.weights_.shape)
        for start in range(0, len(moved), NOISE_USERS):
            block, answers = moved[start : start + NOISE_USERS], confirmed[start : start + NOISE_USERS]
            for direction, right, steps in zip(block, answers, self._noise(len(block)), strict=True):
                self._take(self._estimate(direction, confirmed=right), steps)
        self._publish()
        return self

    def _learn(self, rows: NDArray[np.floating], places: NDArray[np.intp]) -> None:
        wide = self._extended(rows)
        for start in range(0, len(wide), NOISE_USERS):
            block, labels = wide[start : start + NOISE_USERS], places[start : start + NOISE_USERS]
            directions, noise = self._directions(len(block)), self._noise(len(block))
            for row, place, direction, steps in zip(block, labels, directions, noise, strict=True):
                confirmed = self._place(row, direction) == place
                self._take(self._estimate(direction, confirmed=confirmed), steps)
        self._publish()

    def _place(self, row: Array, direction: Array) -> int:
        scores = (self.weights_ + self._exploration() * direction) @ row
        return int(scores[0] > 0) if len(scores) == 1 else int(scores.argmax())

    def _estimate(self, direction: Array, *, confirmed: bool) -> Array:
        loss = -LOSS_BOUND if confirmed else LOSS_BOUND
        return direction * (loss * direction.size / self._exploration())

    def _directions(self, count: int) -> Array:
        """Return uniform unit vectors; what they are drawn from does not matter to privacy."""
        shape = self.weights_.shape
        drawn = uniform_directions(count, math.prod(shape), rng=self._source)
        return drawn.reshape(count, *shape)

    def _exploration(self) -> float:
        return float(self.radius) * self.horizon**-0.25 if self.exploration is None else float(self.exploration)

    def _reach(self) -> float:
        return float(self.radius) - self._exploration()

    def _contribution_bound(self, dimension: int) -> float:
        return bandit_gradient_bound(dimension, LOSS_BOUND, self._exploration())

    def _event(self, n_features: int, n_classes: int) -> BanditOgdEvent:
        self._check_parameters()
        if not 0 < self._exploration() < self.radius:
            raise ValueError(f"exploration must lie in (0, {self.radius}), got {self._exploration()}")
        dimension = self._n_vectors(n_classes) * self._width(n_features)
        return BanditOgdEvent(dimension, LOSS_BOUND, self._exploration(), float(self.sigma), delta=float(self.delta))


class BanditGradientBaseline(BanditMutualInformationOGD):
    """Play the game of `BanditMutualInformationOGD` without noise: for comparison, never for release."""

    releasable: ClassVar[bool] = False

    def _noise(self, users: int) -> NDArray[np.int64]:
        return np.zeros((users, *self.weights_.shape), dtype=np.int64)


def uniform_directions(count: int, dimension: int, *, rng: RandomSource) -> Array:
    """Return `count` unit vectors with uniform directions, shape (count, dimension), by pairs of normal draws."""
    pairs = -(-count * dimension // 2)
    lengths = np.sqrt(-2 * np.log1p(-rng.random(pairs)))
    turns = 2 * np.pi * rng.random(pairs)
    normal = np.concatenate([lengths * np.cos(turns), lengths * np.sin(turns)])[: count * dimension]
    vectors = normal.reshape(count, dimension)
    directions: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return directions
