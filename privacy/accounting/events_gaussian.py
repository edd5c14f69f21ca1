"""The event of objective perturbation with a Gaussian tilt."""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks, training
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.count_words import model_words
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import ANY_ADJACENCY, require_slot
from privacy.accounting.units import outward
from privacy.accounting.vector_noise import VectorNoise, check_vector_noise, vector_noise_cost
from privacy.wording import as_plural_message
from privacy.wording import gettext_noop as _

# The mechanism's curve is accurate to 1e-11; the charge covers it.
_DELTA_MARGIN = 1e-10


@dataclass(frozen=True, slots=True)
class GaussianObjectiveEvent(Event):
    r"""A minimiser of an objective with a normally distributed tilt, released through a small output noise.

    The objective is that of `ObjectivePerturbationEvent`, with every coordinate of the tilt of standard deviation
    `sigma`. `epsilon` is the loss of the exact minimiser at which its delta is evaluated, change of variables
    included; the output noise comes on top. One of `n_models` one-vs-rest models is described, all are charged.
    """

    epsilon: float
    sigma: float
    regularization: float
    extra_regularization: float
    dimension: int
    gradient_tolerance: float
    output_scale: float
    output_noise: VectorNoise = "laplace"
    output_grid: float = 0.0
    curvature: float = 0.25
    norm_bound: float = 1.0
    gradient_bound: float = 1.0
    n_models: int = 1
    kind: ClassVar[str] = "gaussian_objective_perturbation"
    words: ClassVar[EventWords] = EventWords(
        _("objective perturbation, Gaussian"),
        _("the minimum of an objective tilted by Gaussian noise"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges; an exact solver does not exist, so the tolerance must be positive."""
        for name in (
            "epsilon",
            "sigma",
            "regularization",
            "gradient_tolerance",
            "curvature",
            "norm_bound",
            "gradient_bound",
        ):
            checks.positive(name, getattr(self, name))
        checks.not_negative("extra_regularization", self.extra_regularization)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_models", self.n_models, 1)
        checks.one_of("output_noise", self.output_noise, ("k_norm", "laplace"))
        check_vector_noise(self.output_noise, self.output_scale, self.output_grid, 0.0)

    @property
    def total_regularization(self) -> float:
        """Strong convexity of the objective."""
        return self.regularization + self.extra_regularization

    def output_cost(self) -> Cost:
        """Return the charge of the output noise of one model, which hides where the solver stopped."""
        slack = outward(training.solver_slack(self.gradient_tolerance, self.total_regularization))
        return vector_noise_cost(self.output_noise, self.output_scale, slack, self.output_grid, self.dimension, 0.0)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the tilt with the change of variables, and the output noise, for all models."""
        require_slot(self, adjacency)
        delta = training.gaussian_objective_delta(
            self.epsilon,
            self.sigma,
            self.total_regularization,
            gradient_bound=self.gradient_bound,
            curvature=self.curvature,
            norm_bound=self.norm_bound,
        )
        tilt = Cost(outward(self.epsilon), min(1.0, delta * (1 + _DELTA_MARGIN)))
        # Of replacement only that it is two steps is known: a shift and a curvature of both signs have no bound here.
        total = tilt.plus(self.output_cost()).times(self.n_models)
        return total.of_two_steps() if adjacency == "replace" else total

    def summary(self) -> str:
        """Return one sentence."""
        return as_plural_message(
            "objective perturbation of {word_models} over {n} weight with Gaussian noise of sigma {sigma:.4g}",
            "objective perturbation of {word_models} over {n} weights with Gaussian noise of sigma {sigma:.4g}",
            word_models=model_words(self.n_models),
            n=self.dimension,
            sigma=self.sigma,
        )
