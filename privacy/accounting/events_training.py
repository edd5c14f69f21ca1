"""Events of releases computed from labelled records: trained models and plain Gaussian noise."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from privacy.accounting import checks, training
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, no_proof
from privacy.accounting.count_words import model_words
from privacy.accounting.event import Event, EventWords
from privacy.accounting.noise_words import NOISE_WORDS
from privacy.accounting.screens import hidden_selection_delta, hidden_selection_epsilon, rate_after_release
from privacy.accounting.units import outward
from privacy.accounting.vector_noise import VectorNoise, check_vector_noise, gaussian_cost, vector_noise_cost
from privacy.wording import as_message, as_plural_message
from privacy.wording import gettext_noop as _

FIXED_SLOTS: frozenset[Adjacency] = frozenset({"null", "replace"})
ANY_ADJACENCY: frozenset[Adjacency] = frozenset(ADJACENCIES)
SLOT_RULE = as_message("the number of slots must be public, so neighbours differ inside one slot")


def require_slot(event: Event, adjacency: Adjacency) -> None:
    """Raise `NoProof` for an adjacency that changes the number of slots."""
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    if adjacency not in event.valid_for:
        raise no_proof(event.kind, adjacency, SLOT_RULE)


def hidden_cost(event: Event, inner: Event, rate: float, adjacency: Adjacency) -> Cost:
    """Return what `event` costs when it runs `inner` on records that take part by secret coins of at most `rate`."""
    whole = inner.cost(adjacency="null")
    if math.isinf(whole.epsilon):
        raise no_proof(event.kind, adjacency, as_message("a hidden selection amplifies only what has a finite epsilon"))
    if adjacency == "replace" and whole.delta == 0:
        return Cost(outward(hidden_selection_epsilon(rate, whole.epsilon, "replace")))
    once = Cost(
        outward(hidden_selection_epsilon(rate, whole.epsilon)),
        min(1.0, outward(hidden_selection_delta(rate, whole.delta))),
    )
    return once.of_two_steps() if adjacency == "replace" else once


@dataclass(frozen=True, slots=True)
class GaussianEvent(Event):
    """Gaussian noise on a quantity whose L2 sensitivity was proven for the adjacency `stated_for`.

    With `delta` > 0 the charge is a point on the mechanism's exact curve, for `pure` accounts; without, only rho is
    charged.
    """

    sensitivity_l2: float
    sigma: float
    stated_for: Adjacency = "null"
    delta: float = 0.0
    kind: ClassVar[str] = "gaussian"
    words: ClassVar[EventWords] = EventWords(
        _("Gaussian noise"),
        _("Gaussian noise of scale %(sigma)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks.not_negative("sensitivity_l2", self.sensitivity_l2)
        checks.one_of("stated_for", self.stated_for, ADJACENCIES)
        check_vector_noise("gaussian", self.sigma, 0.0, self.delta)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        """Return sensitivity over sigma; a replacement is two null steps."""
        return self._sensitivity(adjacency) / self.sigma

    def _sensitivity(self, adjacency: Adjacency) -> float:
        if adjacency == self.stated_for:
            return self.sensitivity_l2
        if adjacency == "replace" and self.stated_for == "null":
            return 2 * self.sensitivity_l2
        raise no_proof(
            self.kind, adjacency, as_message("its sensitivity was proven for {adjacency}", adjacency=self.stated_for)
        )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return rho, and epsilon where `delta` is given."""
        return gaussian_cost(self._sensitivity(adjacency), self.sigma, self.delta)

    def in_rho(self) -> Self:
        """Return the same noise without a point of its curve."""
        return replace(self, delta=0.0)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "Gaussian noise of sigma {sigma:.4g} on sensitivity {sensitivity:.4g}",
            sigma=self.sigma,
            sensitivity=self.sensitivity_l2,
        )


@dataclass(frozen=True, slots=True)
class MinibatchSgdEvent(Event):
    """Noisy mini-batch updates on sums of clipped gradients; each label feeds at most `updates_per_record` of them.

    `noise_scale` is the scale of the Gamma-distributed norm (`k_norm`), of each Laplace coordinate, or sigma, of noise
    added to the sum; `grid` is the rounding step of the sum before noise.
    """

    noise_scale: float
    dimension: int
    norm_bound: float = 1.0
    noise: VectorNoise = "k_norm"
    grid: float = 0.0
    updates_per_record: int = 1
    delta: float = 0.0
    kind: ClassVar[str] = "minibatch_sgd"
    words: ClassVar[EventWords] = EventWords(
        _("noisy mini-batches"),
        _("noisy updates from small batches"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_vector_noise(self.noise, self.noise_scale, self.grid, self.delta)
        checks.positive("norm_bound", self.norm_bound)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("updates_per_record", self.updates_per_record, 1)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the loss of all updates one label feeds; the whole stream of labels costs no more."""
        require_slot(self, adjacency)
        moved = training.records_moved(adjacency) * self.norm_bound
        one = vector_noise_cost(self.noise, self.noise_scale, moved, self.grid, self.dimension, self.delta)
        return one.times(self.updates_per_record)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "mini-batch updates with {word_noise} of scale {noise_scale:.4g}",
            word_noise=NOISE_WORDS[self.noise],
            noise_scale=self.noise_scale,
        )


@dataclass(frozen=True, slots=True)
class OutputPerturbationEvent(Event):
    """Noise on a regularised minimiser, found to a certified gradient norm and rounded to a grid.

    `regularization`, `n` and `gradient_tolerance` belong to the objective named by `form`; `n` is 0 in the sum form.
    One of `n_models` one-vs-rest models is described; all of them are charged.
    """

    regularization: float
    noise_scale: float
    dimension: int
    gradient_tolerance: float
    gradient_bound: float = 1.0
    form: training.ObjectiveForm = "sum"
    n: int = 0
    noise: VectorNoise = "k_norm"
    grid: float = 0.0
    n_models: int = 1
    delta: float = 0.0
    kind: ClassVar[str] = "output_perturbation"
    words: ClassVar[EventWords] = EventWords(
        _("output perturbation"),
        _("a certified minimum with noise on the weights"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_vector_noise(self.noise, self.noise_scale, self.grid, self.delta)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_models", self.n_models, 1)
        self.sensitivity_l2()

    def sensitivity_l2(self, adjacency: Adjacency = "null") -> float:
        """Return the L2 sensitivity of one model before rounding to the grid, solver slack included."""
        exact = training.erm_sensitivity(
            self.n,
            self.regularization,
            self.gradient_bound,
            form=self.form,
            adjacency=adjacency,
            gradient_tolerance=self.gradient_tolerance,
        )
        return outward(exact)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the charge of all models."""
        sensitivity = self.sensitivity_l2(adjacency)
        one = vector_noise_cost(self.noise, self.noise_scale, sensitivity, self.grid, self.dimension, self.delta)
        return one.times(self.n_models)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "output perturbation of {word_models}, {word_noise} of scale {noise_scale:.4g}",
            word_models=model_words(self.n_models),
            word_noise=NOISE_WORDS[self.noise],
            noise_scale=self.noise_scale,
        )


@dataclass(frozen=True, slots=True)
class ObjectivePerturbationEvent(Event):
    r"""A minimiser of a randomly tilted objective, released through a small output noise.

    The objective is in sum form, :math:`\sum_i \ell_i(w) + (\Lambda + \Delta)\lVert w\rVert^2/2 + b \cdot w`, with
    `regularization` :math:`\Lambda`, `extra_regularization` :math:`\Delta` and the norm of `b` Gamma-distributed with
    shape `dimension` and scale ``moved * gradient_bound / epsilon_prime``, where `adjacency` decides `moved`: 1 for
    null, 2 for replace. `gradient_tolerance` is the certified gradient norm at the returned point and includes the
    rounding of `b`. One of `n_models` one-vs-rest models is described; all of them are charged.
    """

    epsilon_prime: float
    regularization: float
    extra_regularization: float
    dimension: int
    gradient_tolerance: float
    output_scale: float
    output_noise: VectorNoise = "k_norm"
    output_grid: float = 0.0
    output_delta: float = 0.0
    curvature: float = 0.25
    norm_bound: float = 1.0
    gradient_bound: float = 1.0
    n_models: int = 1
    adjacency: Literal["null", "replace"] = "null"
    kind: ClassVar[str] = "objective_perturbation"
    words: ClassVar[EventWords] = EventWords(
        _("objective perturbation"),
        _("the minimum of a randomly tilted objective"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        """Check the ranges; an exact solver does not exist, so the tolerance must be positive."""
        for name in (
            "epsilon_prime",
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
        checks.one_of("adjacency", self.adjacency, ("null", "replace"))
        check_vector_noise(self.output_noise, self.output_scale, self.output_grid, self.output_delta)

    @property
    def total_regularization(self) -> float:
        """Strong convexity of the objective."""
        return self.regularization + self.extra_regularization

    @property
    def tilt_scale(self) -> float:
        """Scale of the Gamma-distributed norm of the tilt `b`."""
        return training.gamma_norm_scale(self.epsilon_prime, self.gradient_bound, self.adjacency)

    def output_cost(self) -> Cost:
        """Return the charge of the output noise of one model, which hides where the solver stopped."""
        slack = outward(training.solver_slack(self.gradient_tolerance, self.total_regularization))
        return vector_noise_cost(
            self.output_noise, self.output_scale, slack, self.output_grid, self.dimension, self.output_delta
        )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the tilt, the change of variables and the output noise, for all models."""
        require_slot(self, adjacency)
        tilt = self.epsilon_prime * training.records_moved(adjacency) / training.records_moved(self.adjacency)
        curved = training.curvature_loss(self.curvature, self.norm_bound, self.total_regularization)
        return Cost(outward(tilt + curved)).plus(self.output_cost()).times(self.n_models)

    def summary(self) -> str:
        """Return one sentence."""
        return as_plural_message(
            "objective perturbation of {word_models} over {n} weight",
            "objective perturbation of {word_models} over {n} weights",
            word_models=model_words(self.n_models),
            n=self.dimension,
        )


@dataclass(frozen=True, slots=True)
class SecretSampleEvent(Event):
    """A mechanism run on the slots whose secret coin of public rate at most `rate` came up.

    `released_before` is the total loss (inner, under null adjacency) of what has already been released from the same
    coins: every release tells something about who took part, and the next one is amplified less. Fresh coins over
    records that earlier samples left out start again at zero.
    """

    inner: Event
    rate: float
    released_before: float = 0.0
    kind: ClassVar[str] = "secret_sample"
    words: ClassVar[EventWords] = EventWords(
        _("training on a secret sample"),
        _("on a secret sample of rate at most %(rate)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges, and that nothing inside leans on a parent or a sample of its own."""
        checks.rate("rate", self.rate)
        checks.not_negative("released_before", self.released_before)
        if isinstance(self.inner, SecretSampleEvent) or self.inner.needs_parent:
            raise ValueError(as_message("{kind} cannot be sampled", kind=self.inner.kind))

    @property
    def needs_parent(self) -> bool:
        """A further release from the same coins descends from the one before it."""
        return self.released_before > 0

    def check_parent(self, parent: Event | None) -> None:
        """Refuse to continue anything but a sample whose releases this one has counted."""
        Event.check_parent(self, parent)
        if not self.needs_parent:
            return
        if not isinstance(parent, SecretSampleEvent) or parent.rate > self.rate:
            raise ValueError(
                as_message("a further release must descend from a secret sample of rate at most {rate}", rate=self.rate)
            )
        known = parent.released_before + parent.inner.cost(adjacency="null").epsilon
        if self.released_before < known:
            raise ValueError(
                as_message(
                    "released_before must be >= {known} of the releases before, got {released_before}",
                    known=known,
                    released_before=self.released_before,
                )
            )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the amplified loss; the inner mechanism must have one under null adjacency."""
        require_slot(self, adjacency)
        rate = (
            min(1.0, outward(rate_after_release(self.rate, self.released_before)))
            if self.released_before
            else self.rate
        )
        return hidden_cost(self, self.inner, rate, adjacency)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message("on a secret {rate:.4g} sample: {reason}", rate=self.rate, reason=self.inner.summary())
