"""Events of online learning from one noisy gradient per user, recorded with their mutual information."""

from dataclasses import dataclass
from typing import ClassVar

from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import FIXED_SLOTS, require_slot
from privacy.accounting.mutual_information import bandit_gradient_bound, bandit_mi, gaussian_mi
from privacy.accounting.units import outward
from privacy.accounting.vector_noise import check_vector_noise, gaussian_cost
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True, slots=True)
class MutualInformationOgdEvent(Event):
    """One clipped gradient per user with Gaussian noise; charged as zCDP, its mutual information only shown."""

    dimension: int
    lipschitz: float
    sigma: float
    delta: float = 0.0
    kind: ClassVar[str] = "mutual_information_ogd"
    words: ClassVar[EventWords] = EventWords(
        _("online gradient descent"),
        _("gradients clipped to %(lipschitz)s with noise of scale %(sigma)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges."""
        gaussian_mi(self.dimension, self.lipschitz, self.sigma)
        check_vector_noise("gaussian", self.sigma, 0.0, self.delta)

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        """Return the ratio of a replacement, which is charged under null as well."""
        require_slot(self, adjacency)
        return 2 * self.lipschitz / self.sigma

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return rho = 2 L^2 / sigma^2 and the mutual information of one user."""
        require_slot(self, adjacency)
        cost = gaussian_cost(2 * self.lipschitz, self.sigma, self.delta)
        nats = outward(gaussian_mi(self.dimension, self.lipschitz, self.sigma))
        return Cost(cost.epsilon, cost.delta, cost.rho, nats)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "noisy gradients clipped to {lipschitz:.4g} with sigma {sigma:.4g}",
            lipschitz=self.lipschitz,
            sigma=self.sigma,
        )


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
    words: ClassVar[EventWords] = EventWords(
        _("online descent by yes and no"),
        _("gradients from yes and no with noise of scale %(sigma)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges."""
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
        """Return one sentence."""
        return as_message(
            "noisy bandit gradients of loss bound {loss_bound:.4g} with sigma {sigma:.4g}",
            loss_bound=self.loss_bound,
            sigma=self.sigma,
        )
