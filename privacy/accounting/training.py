"""Sensitivities, losses and events of models trained on labelled records."""

# Objectives have two forms. Sum: sum_i l_i(w) + (Lambda / 2) |w|^2, where Lambda is public and the number of records
# need not be. Mean: (1 / n) sum_i l_i(w) + (lambda / 2) |w|^2 with public n, which is the sum form with Lambda = n
# lambda. Proofs are in docs/privacy.md, training.

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

from privacy.accounting import checks
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, float_at_least, no_proof, outward
from privacy.accounting.event import NOISE_WORDS, Event, EventWords, counted_words
from privacy.accounting.screens import hidden_selection_delta, hidden_selection_epsilon, rate_after_release
from privacy.wording import gettext_noop as _

ObjectiveForm = Literal["mean", "sum"]
Norm = Literal["l1", "l2"]
Jacobian = Literal["published", "rank_one"]

# Calibrations stay below the target by more than `units.outward` adds when the event is priced again.
_SLACK = 1 - 2.0**-45


def records_moved(adjacency: Adjacency) -> int:
    """Return how many gradient terms differ between neighbours: two for a replacement, else one."""
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    return 2 if adjacency == "replace" else 1


def sum_regularization(regularization: float, n: int, form: ObjectiveForm) -> float:
    checks.positive("regularization", regularization)
    checks.one_of("form", form, ("mean", "sum"))
    if form == "sum":
        return regularization
    checks.at_least("n", n, 1)
    return n * regularization


def erm_sensitivity(
    n: int,
    regularization: float,
    gradient_bound: float = 1.0,
    *,
    form: ObjectiveForm = "mean",
    adjacency: Adjacency = "replace",
    gradient_tolerance: float = 0.0,
) -> float:
    r"""Return the L2 sensitivity of a regularised minimiser.

    Parameters
    ----------
    n : int
        Public number of records, >= 1; ignored in the sum form.
    regularization : float
        :math:`\lambda` (mean form) or :math:`\Lambda` (sum form), > 0.
    gradient_bound : float
        Bound `G` on the gradient norm of one loss term, > 0.
    form : {"mean", "sum"}
        Which objective is minimised.
    adjacency : {"replace", "null", "add_remove"}
        `add_remove` needs the sum form, since it changes `n`.
    gradient_tolerance : float
        Certified bound `g` on the gradient norm of the objective (in its own form) at the returned point, >= 0;
        adds :math:`2g/\lambda`.

    Returns
    -------
    float
        :math:`2G/(n\lambda)` by default, half of it under `null`; :math:`G/\Lambda` and :math:`2G/\Lambda` in the sum
        form.

    Raises
    ------
    NoProof
        For `add_remove` in the mean form.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011, Corollary 8.
    """
    checks.positive("gradient_bound", gradient_bound)
    checks.not_negative("gradient_tolerance", gradient_tolerance)
    total = sum_regularization(regularization, n, form)
    if form == "mean" and adjacency == "add_remove":
        raise no_proof("the mean-form minimiser", adjacency, "n must be public; use the sum form")
    return records_moved(adjacency) * gradient_bound / total + solver_slack(gradient_tolerance, regularization)


def solver_slack(gradient_tolerance: float, regularization: float) -> float:
    r"""Return :math:`2g/\lambda`: how far two certified points can lie apart while their exact minimisers agree."""
    checks.not_negative("gradient_tolerance", gradient_tolerance)
    checks.positive("regularization", regularization)
    return 2 * gradient_tolerance / regularization


def grid_slack(grid: float, dimension: int, norm: Norm = "l2") -> float:
    r"""Return what rounding to a grid adds to the sensitivity: :math:`h\sqrt d` in L2, :math:`hd` in L1."""
    checks.not_negative("grid", grid)
    checks.at_least("dimension", dimension, 1)
    checks.one_of("norm", norm, ("l1", "l2"))
    return grid * (math.sqrt(dimension) if norm == "l2" else dimension)


def curvature_loss(curvature: float, norm_bound: float, regularization: float) -> float:
    r"""Return the loss of the change of variables, :math:`\ln(1 + cM^2/\Lambda)`, for one rank-one Hessian term.

    Parameters
    ----------
    curvature : float
        Bound `c` on the second derivative of the loss in its margin: 1/4 logistic, 1/(2h) Huber-SVM.
    norm_bound : float
        Bound `M` on the norm of a record, > 0.
    regularization : float
        Total sum-form regularisation, extra included, > 0.
    """
    checks.positive("curvature", curvature)
    checks.positive("norm_bound", norm_bound)
    checks.positive("regularization", regularization)
    return math.log1p(curvature * norm_bound**2 / regularization)


def objective_perturbation(
    epsilon: float,
    n: int,
    regularization: float,
    curvature: float = 0.25,
    *,
    norm_bound: float = 1.0,
    form: ObjectiveForm = "mean",
    jacobian: Jacobian = "published",
) -> tuple[float, float]:
    r"""Return the noise parameter and the extra regularisation of objective perturbation.

    Parameters
    ----------
    epsilon : float
        Loss of the exact minimiser, > 0; the solver's output noise comes on top.
    n : int
        Public number of records, >= 1; ignored in the sum form.
    regularization : float
        :math:`\lambda` (mean form) or :math:`\Lambda` (sum form), > 0.
    curvature : float
        Bound `c` on the second derivative of the loss in its margin, > 0.
    norm_bound : float
        Bound `M` on the norm of a record, > 0.
    form : {"mean", "sum"}
        Which objective is minimised; the extra regularisation comes back in the same form.
    jacobian : {"published", "rank_one"}
        `published`: :math:`\varepsilon' = \varepsilon - \ln(1 + 2c/(n\lambda) + c^2/(n\lambda)^2)`. `rank_one`:
        :math:`\varepsilon' = \varepsilon - \ln(1 + c/(n\lambda))`, which is enough because a neighbour changes one
        rank-one Hessian term on either side of a common remainder.

    Returns
    -------
    (epsilon_prime, extra_regularization) : tuple of float
        The norm of the noise vector in the sum-form objective is Gamma(d, G/epsilon_prime) under `null` and
        Gamma(d, 2G/epsilon_prime) under `replace`. Where the change of variables alone would use up `epsilon`, the
        regularisation is raised until it takes half of it, as published. `epsilon_prime` is rounded down so that
        the cost computed back from it does not exceed `epsilon`.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 2 and Theorem 9. The 2008 form leaves the change of
       variables out and does not reach its epsilon.
    """
    checks.positive("epsilon", epsilon)
    checks.one_of("jacobian", jacobian, ("published", "rank_one"))
    total = sum_regularization(regularization, n, form)
    terms = 2 if jacobian == "published" else 1
    left = epsilon * _SLACK - terms * curvature_loss(curvature, norm_bound, total)
    if left > 0:
        return left, 0.0
    raised = curvature * norm_bound**2 / math.expm1(epsilon / 2 / terms)
    extra = max(0.0, raised / total - 1) * regularization
    return epsilon / 2 * _SLACK, extra * (1 + 2.0**-40)


def gamma_norm_scale(epsilon_prime: float, gradient_bound: float, adjacency: Adjacency) -> float:
    r"""Return the scale of the Gamma-distributed norm: :math:`G/\varepsilon'`, twice that for a replacement."""
    checks.positive("epsilon_prime", epsilon_prime)
    checks.positive("gradient_bound", gradient_bound)
    return records_moved(adjacency) * gradient_bound / epsilon_prime


VectorNoise = Literal["k_norm", "laplace", "gaussian"]


def gaussian_cost(sensitivity_l2: float, sigma: float, delta: float) -> Cost:
    """Return the charge of Gaussian noise: rho always, and an epsilon where `delta` names a point to charge."""
    rho = float_at_least((Fraction(sensitivity_l2) / Fraction(sigma)) ** 2 / 2)
    if delta > 0:
        return Cost(outward(gaussian_epsilon(outward(sensitivity_l2 / sigma), delta), 1e-11), delta, rho=rho)
    return Cost(math.inf if rho else 0.0, rho=rho)


def vector_noise_cost(noise: VectorNoise, scale: float, l2: float, grid: float, dimension: int, delta: float) -> Cost:
    """Return the charge of adding noise to a vector of L2 sensitivity `l2` that was first rounded to `grid`."""
    if noise == "laplace" and dimension > 1:
        sensitivity = outward(math.sqrt(dimension) * l2 + grid_slack(grid, dimension, "l1"))
    else:
        sensitivity = outward(l2 + grid_slack(grid, dimension)) if grid else l2
    if noise == "gaussian":
        return gaussian_cost(sensitivity, scale, delta)
    return Cost(float_at_least(Fraction(sensitivity) / Fraction(scale)))


def check_vector_noise(noise: str, scale: float, grid: float, delta: float) -> None:
    checks.one_of("noise", noise, ("k_norm", "laplace", "gaussian"))
    checks.positive("noise scale", scale)
    checks.not_negative("grid", grid)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta}")
    if delta > 0 and noise != "gaussian":
        raise ValueError(f"delta must be 0 for {NOISE_WORDS[noise]}, got {delta}")


FIXED_SLOTS: frozenset[Adjacency] = frozenset({"null", "replace"})
ANY_ADJACENCY: frozenset[Adjacency] = frozenset(ADJACENCIES)
SLOT_RULE = "the number of slots must be public, so neighbours differ inside one slot"


def require_slot(event: Event, adjacency: Adjacency) -> None:
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    if adjacency not in event.valid_for:
        raise no_proof(event.kind, adjacency, SLOT_RULE)


def hidden_cost(event: Event, inner: Event, rate: float, adjacency: Adjacency) -> Cost:
    """Return what `event` costs when it runs `inner` on records that take part by secret coins of at most `rate`."""
    whole = inner.cost(adjacency="null")
    if math.isinf(whole.epsilon):
        raise no_proof(event.kind, adjacency, "a hidden selection amplifies only what has a finite epsilon")
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
    words: ClassVar[EventWords] = EventWords(_("Gaussian noise"), _("Gaussian noise of scale %(sigma)s"))
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
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
        raise no_proof(self.kind, adjacency, f"its sensitivity was proven for {self.stated_for}")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        return gaussian_cost(self._sensitivity(adjacency), self.sigma, self.delta)

    def in_rho(self) -> Self:
        return replace(self, delta=0.0)

    def summary(self) -> str:
        return f"Gaussian noise of sigma {self.sigma:.4g} on sensitivity {self.sensitivity_l2:.4g}"


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
    words: ClassVar[EventWords] = EventWords(_("noisy mini-batches"), _("noisy mini-batches"))
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        check_vector_noise(self.noise, self.noise_scale, self.grid, self.delta)
        checks.positive("norm_bound", self.norm_bound)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("updates_per_record", self.updates_per_record, 1)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the loss of all updates one label feeds; the whole stream of labels costs no more."""
        require_slot(self, adjacency)
        moved = records_moved(adjacency) * self.norm_bound
        one = vector_noise_cost(self.noise, self.noise_scale, moved, self.grid, self.dimension, self.delta)
        return one.times(self.updates_per_record)

    def summary(self) -> str:
        return f"mini-batch updates with {NOISE_WORDS[self.noise]} of scale {self.noise_scale:.4g}"


def _models(number: int) -> str:
    return "one model" if number == 1 else f"{number} models"


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
    form: ObjectiveForm = "sum"
    n: int = 0
    noise: VectorNoise = "k_norm"
    grid: float = 0.0
    n_models: int = 1
    delta: float = 0.0
    kind: ClassVar[str] = "output_perturbation"
    words: ClassVar[EventWords] = EventWords(_("output perturbation"), _("certified minimum, noisy weights"))
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        check_vector_noise(self.noise, self.noise_scale, self.grid, self.delta)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_models", self.n_models, 1)
        self.sensitivity_l2()

    def sensitivity_l2(self, adjacency: Adjacency = "null") -> float:
        """Return the L2 sensitivity of one model before rounding to the grid, solver slack included."""
        exact = erm_sensitivity(
            self.n,
            self.regularization,
            self.gradient_bound,
            form=self.form,
            adjacency=adjacency,
            gradient_tolerance=self.gradient_tolerance,
        )
        return outward(exact)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        sensitivity = self.sensitivity_l2(adjacency)
        one = vector_noise_cost(self.noise, self.noise_scale, sensitivity, self.grid, self.dimension, self.delta)
        return one.times(self.n_models)

    def summary(self) -> str:
        noise = f"{NOISE_WORDS[self.noise]} of scale {self.noise_scale:.4g}"
        return f"output perturbation of {_models(self.n_models)}, {noise}"


@dataclass(frozen=True, slots=True)
class ObjectivePerturbationEvent(Event):
    r"""A minimiser of a randomly tilted objective, released through a small output noise.

    The objective is in sum form, :math:`\sum_i \ell_i(w) + (\Lambda + \Delta)\lVert w\rVert^2/2 + b \cdot w`, with
    `regularization` :math:`\Lambda`, `extra_regularization` :math:`\Delta` and the norm of `b` Gamma-distributed with
    shape `dimension` and scale ``moved * gradient_bound / epsilon_prime``, where `adjacency` decides `moved`: 1 for
    null, 2 for replace. `gradient_tolerance` is the certified gradient norm at the returned point, the rounding of `b`
    included: an exact solver does not exist, so it is positive. One of `n_models` one-vs-rest models is described; all
    of them are charged.
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
    words: ClassVar[EventWords] = EventWords(_("objective perturbation"), _("minimum of a tilted objective"))
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.positive("epsilon_prime", self.epsilon_prime)
        checks.one_of("adjacency", self.adjacency, ("null", "replace"))
        for name in ("regularization", "gradient_tolerance", "curvature", "norm_bound", "gradient_bound"):
            checks.positive(name, getattr(self, name))
        checks.not_negative("extra_regularization", self.extra_regularization)
        checks.at_least("dimension", self.dimension, 1)
        checks.at_least("n_models", self.n_models, 1)
        check_vector_noise(self.output_noise, self.output_scale, self.output_grid, self.output_delta)

    @property
    def total_regularization(self) -> float:
        return self.regularization + self.extra_regularization

    def output_cost(self) -> Cost:
        """Return the charge of the output noise of one model, which hides where the solver stopped."""
        slack = outward(solver_slack(self.gradient_tolerance, self.total_regularization))
        return vector_noise_cost(
            self.output_noise, self.output_scale, slack, self.output_grid, self.dimension, self.output_delta
        )

    @property
    def tilt_scale(self) -> float:
        return gamma_norm_scale(self.epsilon_prime, self.gradient_bound, self.adjacency)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the tilt, the change of variables and the output noise, for all models."""
        require_slot(self, adjacency)
        tilt = self.epsilon_prime * records_moved(adjacency) / records_moved(self.adjacency)
        curved = curvature_loss(self.curvature, self.norm_bound, self.total_regularization)
        return Cost(outward(tilt + curved)).plus(self.output_cost()).times(self.n_models)

    def summary(self) -> str:
        return f"objective perturbation of {_models(self.n_models)} over {counted_words(self.dimension, 'weight')}"


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
    words: ClassVar[EventWords] = EventWords(_("training on a secret sample"), _("on a secret %(rate)s sample"))
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        checks.rate("rate", self.rate)
        checks.not_negative("released_before", self.released_before)
        if isinstance(self.inner, SecretSampleEvent) or self.inner.needs_parent:
            raise ValueError(f"{self.inner.kind} cannot be sampled")

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
            raise ValueError(f"a further release must descend from a secret sample of rate at most {self.rate}")
        known = parent.released_before + parent.inner.cost(adjacency="null").epsilon
        if self.released_before < known:
            raise ValueError(f"released_before must be >= {known} of the releases before, got {self.released_before}")

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
        return f"on a secret {self.rate:.4g} sample: {self.inner.summary()}"
