"""Mutual information of noisy gradient steps, for display: the ledger never admits by it."""

import math
from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost, outward
from privacy.accounting.event import Event, EventWords
from privacy.accounting.training import FIXED_SLOTS, check_vector_noise, gaussian_cost, require_slot


def _capacity(dimension: int, power: float, sigma: float) -> float:
    return dimension / 2 * math.log1p(power / (dimension * sigma * sigma))


def gaussian_mi(dimension: int, lipschitz: float, sigma: float) -> float:
    r"""Return the most one noisy gradient tells about the user it came from.

    Parameters
    ----------
    dimension : int
        Number of coordinates `d`, >= 1.
    lipschitz : float
        Bound `L` to which gradients are clipped, >= 0.
    sigma : float
        Standard deviation of the noise of every coordinate, > 0.

    Returns
    -------
    float
        :math:`(d/2) \ln(1 + L^2/(d\sigma^2))` nats per user.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Theorem 1.
    """
    checks.at_least("dimension", dimension, 1)
    checks.not_negative("lipschitz", lipschitz)
    checks.positive("sigma", sigma)
    return _capacity(dimension, lipschitz * lipschitz, sigma)


def bandit_gradient_bound(dimension: int, loss_bound: float, radius: float, lipschitz: float = 0.0) -> float:
    r"""Return the largest norm of a one-point gradient estimate :math:`(d/\delta)\,\varphi\,e`.

    Parameters
    ----------
    dimension : int
        Number of coordinates `d`, >= 1.
    loss_bound : float
        Bound `F` on the loss inside the feasible set, > 0.
    radius : float
        Exploration radius :math:`\delta`, > 0.
    lipschitz : float
        Lipschitz constant `L` of the loss, >= 0; zero where the reported loss is clipped to [-F, F] or the
        centre is projected so that the exploration stays inside the set.

    Returns
    -------
    float
        :math:`d (F/\delta + L)`.
    """
    checks.at_least("dimension", dimension, 1)
    checks.positive("loss_bound", loss_bound)
    checks.positive("radius", radius)
    checks.not_negative("lipschitz", lipschitz)
    return dimension * (loss_bound / radius + lipschitz)


def bandit_mi(dimension: int, loss_bound: float, radius: float, lipschitz: float, sigma: float) -> float:
    r"""Return the most one noisy bandit gradient tells about the user it came from.

    Returns
    -------
    float
        :math:`(d/2) \ln(1 + d (F/\delta + L)^2/\sigma^2)` nats per user.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam 2018, Theorem 3. Theorem 4 of the same source prints :math:`F/\eta` where the
       exploration radius :math:`\delta` belongs.
    """
    checks.positive("sigma", sigma)
    bound = bandit_gradient_bound(dimension, loss_bound, radius, lipschitz)
    return _capacity(dimension, bound * bound, sigma)


@dataclass(frozen=True, slots=True)
class MutualInformationOgdEvent(Event):
    """One clipped gradient per user with Gaussian noise; charged as zCDP, its mutual information only shown."""

    dimension: int
    lipschitz: float
    sigma: float
    delta: float = 0.0
    kind: ClassVar[str] = "mutual_information_ogd"
    words: ClassVar[EventWords] = EventWords(
        "online gradient descent", "gradients clipped to %(lipschitz)s, σ %(sigma)s"
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        gaussian_mi(self.dimension, self.lipschitz, self.sigma)
        check_vector_noise("gaussian", self.sigma, 0.0, self.delta)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        """Return the ratio of a replacement, which is charged under null as well."""
        require_slot(self, adjacency)
        return 2 * self.lipschitz / self.sigma

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        cost = gaussian_cost(2 * self.lipschitz, self.sigma, self.delta)
        nats = outward(gaussian_mi(self.dimension, self.lipschitz, self.sigma))
        return Cost(cost.epsilon, cost.delta, cost.rho, nats)

    def summary(self) -> str:
        return f"noisy gradients clipped to {self.lipschitz:.4g} with sigma {self.sigma:.4g}"


@dataclass(frozen=True, slots=True)
class BanditOgdEvent(Event):
    """One noisy one-point gradient estimate per user, from a loss clipped to [-loss_bound, loss_bound].

    `lipschitz` stays 0 with clipping; without, it bounds how far the loss rises outside the feasible set.
    """

    dimension: int
    loss_bound: float
    radius: float
    sigma: float
    lipschitz: float = 0.0
    delta: float = 0.0
    kind: ClassVar[str] = "bandit_ogd"
    words: ClassVar[EventWords] = EventWords("online bandit descent", "yes/no gradients, σ %(sigma)s")
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        bandit_mi(self.dimension, self.loss_bound, self.radius, self.lipschitz, self.sigma)
        check_vector_noise("gaussian", self.sigma, 0.0, self.delta)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        """Return the ratio of a replacement, which is charged under null as well."""
        require_slot(self, adjacency)
        return 2 * bandit_gradient_bound(self.dimension, self.loss_bound, self.radius, self.lipschitz) / self.sigma

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return rho of the estimate's norm bound and the mutual information of one user."""
        require_slot(self, adjacency)
        bound = bandit_gradient_bound(self.dimension, self.loss_bound, self.radius, self.lipschitz)
        cost = gaussian_cost(2 * outward(bound), self.sigma, self.delta)
        nats = bandit_mi(self.dimension, self.loss_bound, self.radius, self.lipschitz, self.sigma)
        return Cost(cost.epsilon, cost.delta, cost.rho, outward(nats))

    def summary(self) -> str:
        return f"noisy bandit gradients of loss bound {self.loss_bound:.4g} with sigma {self.sigma:.4g}"
