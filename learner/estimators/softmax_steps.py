"""Softmax regression by a few noisy gradient steps over all rows, at one price whatever the number of classes."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from learner.estimators.choice import OF_TRUSTED_POOLS, GaussianChoice, Shape
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent, gradient_steps_event
from privacy.choices import Sound
from privacy.mechanisms.gradient_steps import NoisySteps
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import gettext_noop as _

# Found on public tasks, see docs/results/utility.md: how far noise alone may carry a weight over all steps, from
# nothing and from a prior that points the right way already; and the longest step that does not swing to and fro.
MOST_NOISE, MOST_NOISE_FROM_PRIOR = 1.5, 0.7
LONGEST_STEP = 9.0
# Found on ten digits, CLINC 50 and SLURP 18: how far rows reach about their mean, beside the root of what it leaves of
# their squared length. What lies further is clipped.
REACH = 0.85
# A mean is never taken to be nearly all of every row.
LONGEST_CENTER = 0.95
# Mean length of a class's weights at which a prior starts: its directions are known, its scale is not.
PRIOR_LENGTH = 10.0


@dataclass(eq=False, repr=False)
class PrivateSoftmaxSteps(PricedClassifier[GradientStepsEvent]):
    r"""Follow noisy gradients of softmax regression, each over all rows.

    A record moves a gradient by its residual times its row. Residuals are clipped to a length below one, so records
    that are answered well already cost nothing of the signal while the noise shrinks with the bound. Classes are not
    paid for one by one. How long a step is follows from the noise and from a noisy count of the rows.

    Parameters
    ----------
    epsilon, delta : float
        What the release may cost, epsilon > 0, 0 < delta < 1: a point on the Gaussian mechanism's exact curve.
    classes : sequence of at least two distinct labels
        Declared beforehand. Only a simulation may leave it out.
    steps : int
        Noisy gradients, >= 1; noise grows with the root of their number.
    residual_bound : float
        Longest residual, in (0, 2].
    center_share : float
        Share of the budget, in squared ratios, for a noisy mean of the rows, about which they are taken: what all rows
        have in common tells no class from another, yet noise on it counts; 0 for none. In [0, 0.5).
    norm_bound : float
        Bound on the L2 norm of a row, > 0; longer rows are refused.
    intercept_scaling : float
        Constant column, > 0. It adds to the norm bound in quadrature.
    adjacency : {"null", "add_remove", "replace"}
        The neighbours for which epsilon is meant.
    prior : LinearModel, optional
        A public or released model to start from; it changes neither noise nor price.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Mean weights over the second half of the steps; probabilities are the softmax of their scores.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    privacy_event_ : Event
        What the fit must be charged, equal to ``event_for(n_features_in_)``.
    simulated_ : bool
        True if the noise came from a seed.

    References
    ----------
    .. [1] Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, "Deep learning with differential privacy", 2016
       (with every row in each step, and noise that composes exactly).
    """

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 1e-6
    classes: Any = None
    steps: int = 40
    residual_bound: float = 0.25
    center_share: float = 0.02
    norm_bound: float = 1.0
    intercept_scaling: float = 0.2
    adjacency: Adjacency = "null"
    prior: LinearModel | None = None
    random_state: RandomSource | np.random.Generator | int | None = None

    fit_intercept = True
    multiclass: ClassVar[Multiclass] = "softmax"

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return version 0, of names alone where an encoder reads them; None where nothing is said to the features."""
        return words.model() if words.say_something else None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows `X`, shape (n_samples, n_features), and their labels `y`.

        Raises
        ------
        ValueError
            If a parameter, a row or a label is not as declared.
        """
        rng, rows, labels, classes, event = self._begin_fit(X, y)
        members = self._members(labels, classes).astype(np.float64)
        whole = rows.astype(np.float64, copy=False)
        noisy = NoisySteps(self._with_constant(whole), event, rng=rng)
        center, reach = self._center(noisy, event)
        if reach != 1.0:
            noisy.replace_rows(self._with_constant(self._about(whole, center, reach)))
        weights = self._descend(noisy, members, self._start(event, center, reach), event)
        coef = weights[:, :-1] / reach
        intercept = weights[:, -1] * self.intercept_scaling - coef @ center
        if len(classes) == 2:
            coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
        self.coef_, self.intercept_ = coef, intercept
        self.classes_ = classes
        self.privacy_event_ = event
        self.simulated_ = rng.simulated
        return self

    def _center(self, noisy: NoisySteps, event: GradientStepsEvent) -> tuple[NDArray[np.float64], float]:
        """Return the mean of the rows, drawn to zero as far as noise may explain it, and how far rows reach from it."""
        if not isinstance(event, CenteredStepsEvent) or noisy.row_sum is None:
            return np.zeros(event.dimension - 1), 1.0
        total = noisy.row_sum[:-1]
        # By James and Stein: of its squared length, so much is noise.
        signal = max(0.0, 1 - event.center_sigma**2 * len(total) / max(float(total @ total), 1e-300))
        center = signal * total / max(noisy.count, 1.0)
        length = float(np.linalg.norm(center)) / self.norm_bound
        if length > LONGEST_CENTER:
            center, length = center * (LONGEST_CENTER / length), LONGEST_CENTER
        return center, REACH * math.sqrt(1 - length**2)

    def _about(self, rows: NDArray[np.float64], center: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
        """Return rows about the mean, in units of their reach, clipped to the norm bound.

        What rounding adds lies within the slack of the event's bound, beyond which no row is summed.
        """
        moved = (rows - center) / reach
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        clipped: NDArray[np.float64] = moved * np.minimum(1.0, self.norm_bound / np.maximum(lengths, 1e-300))
        return clipped

    def _descend(
        self,
        noisy: NoisySteps,
        members: NDArray[np.float64],
        weights: NDArray[np.float64],
        event: GradientStepsEvent,
    ) -> NDArray[np.float64]:
        """Return the mean weights over the second half of the steps."""
        count = max(noisy.count, 1.0) / event.n_classes
        most = MOST_NOISE if self.prior is None else MOST_NOISE_FROM_PRIOR
        # Noise of all steps together carries a weight by root(steps) times sigma times this over the count.
        length = min(LONGEST_STEP, most * count / (event.sigma * math.sqrt(event.steps)) * self._row_norm)
        total = np.zeros_like(weights)
        for step in range(event.steps):
            gradient = noisy.release(members - softmax(noisy.scores(weights), axis=1))
            weights = weights + length / count * gradient
            if step >= event.steps // 2:
                total += weights
            self._tell(step + 1, event.steps)
        return total / (event.steps - event.steps // 2)

    def _start(self, event: GradientStepsEvent, center: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
        """Return the prior's weights on rows about the mean, at the length of a start; zeros without a prior."""
        weights = np.zeros((event.n_classes, event.dimension))
        if self.prior is None:
            return weights
        coef, intercept = self.prior.coef, self.prior.intercept
        n_features = event.dimension - 1
        if coef.shape != (1 if event.n_classes == 2 else event.n_classes, n_features):
            raise ValueError(f"prior must have weights for {event.n_classes} classes and {n_features} columns")
        if event.n_classes == 2:
            coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
        coef, intercept = coef * reach, intercept + coef @ center
        scale = PRIOR_LENGTH / max(float(np.linalg.norm(coef, axis=1).mean()), 1e-12) / self.norm_bound
        weights[:, :-1] = scale * coef
        weights[:, -1] = scale * intercept / self.intercept_scaling
        return weights

    def _check_parameters(self) -> None:
        self._check_positive("epsilon", "norm_bound", "intercept_scaling")
        checks.delta_in_open_interval("delta", self.delta)
        if not 0 < self.residual_bound <= 2:
            raise ValueError(f"residual_bound must lie in (0, 2], got {self.residual_bound}")
        if not 0 <= self.center_share < 0.5:
            raise ValueError(f"center_share must lie in [0, 0.5), got {self.center_share}")
        checks.one_of("adjacency", self.adjacency, ADJACENCIES)

    def _event(self, n_features: int, n_classes: int) -> GradientStepsEvent:
        self._check_parameters()
        return gradient_steps_event(
            self.epsilon,
            self.delta,
            steps=self.steps,
            dimension=n_features + 1,
            n_classes=n_classes,
            norm_bound=self._row_norm,
            residual_bound=self.residual_bound,
            center_share=self.center_share,
            adjacency=self.adjacency,
        )


@dataclass(frozen=True)
class SoftmaxSteps(GaussianChoice):
    """Softmax regression by a few noisy gradients."""

    name: ClassVar[str] = "softmax_steps"
    label: ClassVar[str] = _("softmax regression by noisy gradient steps, one price for any classes (has a delta)")
    words: ClassVar[str] = _("softmax regression by noisy gradient steps over all rows")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    rank: ClassVar[int] = 2

    def estimator(self, shape: Shape) -> PrivateSoftmaxSteps:
        """Return the estimator, unfitted."""
        return PrivateSoftmaxSteps(
            self.training_epsilon,
            delta=self.training_delta,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )
