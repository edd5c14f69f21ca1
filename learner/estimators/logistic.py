"""Logistic regression under differential privacy: scikit-learn's contract, a public price, certified solutions."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpal.recompute.transcript import Session, Weights
from learner.estimators.choice import ConvexChoice, PrivateEstimator, Shape
from learner.estimators.convex import minimise
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier
from learner.linear_model import LinearModel
from privacy.accounting import checks
from privacy.accounting.answers import Loss
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.events import ObjectivePerturbationEvent, OutputPerturbationEvent
from privacy.accounting.training import (
    erm_sensitivity,
    grid_slack,
    objective_perturbation,
    solver_slack,
)
from privacy.mechanisms.discrete import DiscreteLaplace, check_grid, release_on_grid
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Measurement, Queries
from privacy.wording import gettext_noop as _

PerturbationMethod = Literal["objective", "output"]
TrainingEvent = ObjectivePerturbationEvent | OutputPerturbationEvent
# Keeps the price recomputed from an event, which is rounded outwards, below the epsilon asked for.
PRICE_MARGIN = 1 - 2.0**-44


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(PricedClassifier[TrainingEvent]):
    r"""Release :math:`\arg\min_w \sum_i \ln(1 + e^{-y_i \langle x_i, w\rangle}) + \frac{\Lambda}{2}\|w\|^2` privately.

    The number of rows enters neither the noise nor the price, so it may itself be private.

    Parameters
    ----------
    epsilon : float
        Privacy loss of the whole fit, all classes together, > 0.
    regularization : float
        Public :math:`\Lambda` > 0 of the sum form; scikit-learn's ``1 / C``.
    method : {"objective", "output"}
        Tilt the objective by a random vector and release its minimiser through a small output
        noise, or add Gamma-norm noise to the plain minimiser. The tilt has a Gamma-distributed norm.
    classes : sequence of at least two distinct labels
        Declared beforehand: a class learned from the labels would be a release. Only a simulation
        may leave it out. With more than two, one model per class shares epsilon evenly.
    norm_bound : float
        Bound on the L2 norm of a row, > 0; longer rows are refused.
    fit_intercept : bool
        Append a constant column, regularised like the others: a free intercept has no sensitivity bound.
    intercept_scaling : float
        The constant, > 0. It adds to the norm bound in quadrature.
    adjacency : {"null", "add_remove", "replace"}
        The neighbours for which epsilon is meant: one row replaced by a dummy without gradient
        (or dropped, at the same price), or by any other row.
    gradient_tolerance : float
        Certified gradient norm at which the solver stops, > 0, rounding errors included. Beyond about three million
        rows these alone exceed the default, and fits end in `CertificateMissed` until it is raised.
    output_epsilon_share : float
        Share of epsilon for the noise that hides where the solver stopped, in (0, 1); objective method only.
    grid : float
        Spacing of the released weights, a power of two.
    prior : LinearModel, optional
        A released or public model towards which weights are regularised instead of towards zero: how a later block
        of labels builds on the release before it. It changes neither noise nor price.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Released weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Released intercepts, `intercept_scaling` included.
    classes_ : ndarray of shape (n_classes,)
        The classes in the order they were declared in.
    n_features_in_ : int
        Number of columns.
    gradient_norm_ : float
        The public bound that was certified; the norm itself depends on the rows and is not kept.
    privacy_event_ : Event
        What the fit must be charged, equal to ``event_for(n_features_in_)``.
    simulated_ : bool
        True if the noise came from a seed: then nothing here may be released.

    Notes
    -----
    Let M bound the rows, constant column included, and :math:`G = M`, :math:`c = 1/4`. Between w and the tilt b
    there is a bijection whose Jacobian a single row changes by a rank-one term, so the minimiser
    costs :math:`\varepsilon' + \ln(1 + cM^2/(\Lambda + \Delta))` when :math:`\|b\|` is Gamma distributed with scale
    :math:`G/\varepsilon'` (twice that for replacement). A solver returns a point within
    :math:`g/(\Lambda + \Delta)` of it; given the minimiser, discrete Laplace noise on the grid hides which.
    The tilt is the float nearest to an exactly distributed real vector, and the difference is part of the certificate.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011,
       Algorithms 1 and 2, Theorems 6 and 9.
    .. [2] Iyengar, Near, Song, Thakkar, Thakurta, Wang, "Towards practical differentially private convex optimization",
       2019, Algorithm 1 (objective perturbation at approximate minima).
    """

    epsilon: float = 1.0
    regularization: float = 1.0
    method: PerturbationMethod = "objective"
    _: KW_ONLY
    classes: Any = None
    norm_bound: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    adjacency: Adjacency = "null"
    gradient_tolerance: float = 1e-6
    output_epsilon_share: float = 0.02
    grid: float = 2.0**-40
    prior: LinearModel | None = None
    random_state: RandomSource | np.random.Generator | int | None = None

    program = "minimisers"

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return version 0 where examples make it: towards names or sentences fits were right less often."""
        return words.model() if words.enough_examples else None

    def _queries(
        self,
        rows: NDArray[np.floating],
        labels: NDArray[Any],
        classes: NDArray[Any],
        event: TrainingEvent,
        rng: RandomSource,
    ) -> Queries:
        priors, sides = self._priors(rows.shape[1], event.n_models), self._sides(labels, classes)
        scale = event.tilt_scale if isinstance(event, ObjectivePerturbationEvent) else event.noise_scale

        def minimiser(place: int) -> Measurement:
            released = self._release(rows, sides[place], priors[place], event, rng)
            return Measurement("minimiser", event.gradient_bound, scale, released)

        return {"minimiser": minimiser}

    def _public(self, event: TrainingEvent) -> dict[str, Any]:
        return {"n_models": event.n_models, "intercept_scaling": self._constant}

    def _learn(self, public: dict[str, Any], session: Session) -> Weights:
        self.gradient_norm_ = float(self.gradient_tolerance)
        return super()._learn(public, session)

    def _check_parameters(self) -> None:
        self._check_positive("epsilon", "regularization", "norm_bound", "intercept_scaling", "gradient_tolerance")
        if not 0 < self.output_epsilon_share < 1:
            raise ValueError(f"output_epsilon_share must lie in (0, 1), got {self.output_epsilon_share}")
        checks.one_of("method", self.method, get_args(PerturbationMethod))
        checks.one_of("adjacency", self.adjacency, ADJACENCIES)
        check_grid(self.grid)

    def _event(self, n_features: int, n_classes: int) -> TrainingEvent:
        self._check_parameters()
        dimension = n_features + bool(self.fit_intercept)
        n_models = 1 if n_classes == 2 else n_classes
        epsilon = self.epsilon / n_models * PRICE_MARGIN
        if self.method == "output":
            sensitivity = erm_sensitivity(
                0,
                self.regularization,
                self._loss.slope_bound * self._row_norm,
                form="sum",
                adjacency=self.adjacency,
                gradient_tolerance=self.gradient_tolerance,
            )
            return OutputPerturbationEvent(
                regularization=float(self.regularization),
                noise_scale=(sensitivity + grid_slack(self.grid, dimension)) / (epsilon * PRICE_MARGIN),
                dimension=dimension,
                gradient_tolerance=float(self.gradient_tolerance),
                gradient_bound=self._loss.slope_bound * self._row_norm,
                grid=float(self.grid),
                n_models=n_models,
            )
        output_epsilon = self.output_epsilon_share * epsilon
        epsilon_prime, extra = objective_perturbation(
            epsilon - output_epsilon,
            0,
            self.regularization,
            self._loss.curvature_bound,
            norm_bound=self._row_norm,
            form="sum",
            jacobian="rank_one",
        )
        return ObjectivePerturbationEvent(
            epsilon_prime=epsilon_prime,
            regularization=float(self.regularization),
            extra_regularization=extra,
            dimension=dimension,
            gradient_tolerance=float(self.gradient_tolerance),
            output_scale=self._output_scale(dimension, extra, output_epsilon),
            output_noise="laplace",
            output_grid=float(self.grid),
            curvature=self._loss.curvature_bound,
            norm_bound=self._row_norm,
            gradient_bound=self._loss.slope_bound * self._row_norm,
            n_models=n_models,
            adjacency="replace" if self.adjacency == "replace" else "null",
        )

    def _output_scale(self, dimension: int, extra: float, output_epsilon: float) -> float:
        """Return the scale of the Laplace noise that hides where the solver stopped."""
        slack = math.sqrt(dimension) * solver_slack(self.gradient_tolerance, self.regularization + extra)
        return (slack + grid_slack(self.grid, dimension, "l1")) / (output_epsilon * PRICE_MARGIN)

    def _priors(self, n_features: int, n_models: int) -> NDArray[np.float64]:
        """Return the weights to regularise towards, shape (n_models, dimension)."""
        if self.prior is None:
            return np.zeros((n_models, n_features + bool(self.fit_intercept)))
        if self.prior.coef.shape != (n_models, n_features):
            raise ValueError(f"prior must have weights of shape {(n_models, n_features)}, got {self.prior.coef.shape}")
        if not self.fit_intercept:
            return self.prior.coef
        return np.hstack([self.prior.coef, self.prior.intercept[:, None] / self.intercept_scaling])

    def _release(
        self,
        rows: NDArray[np.floating],
        signs: NDArray[np.float64],
        prior: NDArray[np.float64],
        event: TrainingEvent,
        rng: RandomSource,
    ) -> NDArray[np.float64]:
        if isinstance(event, ObjectivePerturbationEvent):
            ridge, tilt = event.total_regularization, EuclideanNoise(event.tilt_scale).sample(event.dimension, rng=rng)
        else:
            ridge, tilt = event.regularization, np.zeros(event.dimension)
        pull = ridge * prior
        objective = self._objective(rows, signs, ridge=ridge, tilt=tilt - pull, row_norm=self._row_norm)
        # The difference may be shorter than either vector, whose rounding the certificate must still cover.
        rounding = 2.0**-51 * float(np.linalg.norm(tilt) + np.linalg.norm(pull)) if pull.any() else 0.0
        solved = minimise(objective, tolerance=event.gradient_tolerance - rounding)
        if isinstance(event, OutputPerturbationEvent):
            return EuclideanNoise(event.noise_scale).release(solved, grid=event.grid, rng=rng)
        return release_on_grid(solved, noise=DiscreteLaplace, scale=event.output_scale, grid=event.output_grid, rng=rng)


@dataclass(frozen=True)
class PerturbedChoice(ConvexChoice):
    """Logistic regression, as projects choose it."""

    picks: ClassVar[bool] = True
    leans_on_names: ClassVar[bool] = False
    method: ClassVar[PerturbationMethod]

    def estimator(self, shape: Shape) -> PrivateEstimator:
        return PrivateLogisticRegression(
            self.training_epsilon,
            self.regularization,
            self.method,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            intercept_scaling=shape.intercept_scaling,
            adjacency=shape.adjacency,
            prior=shape.prior,
        )


@dataclass(frozen=True)
class Logistic(PerturbedChoice):
    """Logistic regression with a tilted objective."""

    name: ClassVar[str] = "logistic"
    label: ClassVar[str] = _("logistic regression, objective perturbation")
    words: ClassVar[str] = _("logistic regression, objective perturbation")
    loss: ClassVar[Loss] = "logistic"
    method: ClassVar[PerturbationMethod] = "objective"


@dataclass(frozen=True)
class LogisticOutput(PerturbedChoice):
    """Logistic regression with noisy weights."""

    name: ClassVar[str] = "logistic_output"
    label: ClassVar[str] = _("logistic regression, output perturbation")
    words: ClassVar[str] = _("logistic regression, output perturbation")
    loss: ClassVar[Loss] = "logistic"
    method: ClassVar[PerturbationMethod] = "output"
