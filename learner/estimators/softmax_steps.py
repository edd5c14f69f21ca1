"""Softmax regression by a few noisy gradient steps over all rows, at one price whatever the number of classes."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.estimators.choice import OF_TRUSTED_POOLS, GaussianChoice, Shape
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier, prior_weights
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent, gradient_steps_event
from privacy.choices import Sound
from privacy.mechanisms.gradient_steps import step_queries
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Queries
from privacy.wording import gettext_noop as _


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
    from_examples : bool
        Whether the first of all priors was fitted to examples of every class: it then starts at its whole length.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Mean weights over the second half of the steps; probabilities are the softmax of their scores.
    transcript_ : Transcript
        All answers that the weights were made of.
    intercept_, classes_, privacy_event_, simulated_
        As in `PrivateLogisticRegression`.

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
    from_examples: bool = False
    random_state: RandomSource | np.random.Generator | int | None = None

    fit_intercept = True
    multiclass: ClassVar[Multiclass] = "softmax"
    program = "softmax_steps"

    def leaning(self, words: PublicWords) -> LinearModel | None:
        return words.model() if words.say_something else None

    def _queries(
        self,
        rows: NDArray[np.floating],
        labels: NDArray[Any],
        classes: NDArray[Any],
        event: GradientStepsEvent,
        rng: RandomSource,
    ) -> Queries:
        return step_queries(
            rows.astype(np.float64, copy=False),
            self._members(labels, classes),
            event,
            norm_bound=self.norm_bound,
            constant=self._constant,
            rng=rng,
        )

    def _public(self, event: GradientStepsEvent) -> dict[str, Any]:
        return {
            "steps": event.steps,
            "dimension": event.dimension,
            "n_classes": event.n_classes,
            "sigma": event.sigma,
            "center_sigma": event.center_sigma if isinstance(event, CenteredStepsEvent) else None,
            "norm_bound": float(self.norm_bound),
            "row_norm": self._row_norm,
            "intercept_scaling": float(self.intercept_scaling),
            "prior": prior_weights(self.prior),
            "from_examples": self.from_examples,
        }

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
    label: ClassVar[str] = _("softmax regression, noisy gradient descent (ε, δ)")
    words: ClassVar[str] = _("softmax regression, noisy gradient descent (ε, δ)")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    picks: ClassVar[bool] = True

    def estimator(self, shape: Shape) -> PrivateSoftmaxSteps:
        return PrivateSoftmaxSteps(
            self.training_epsilon,
            delta=self.training_delta,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
            from_examples=shape.has_examples,
        )
