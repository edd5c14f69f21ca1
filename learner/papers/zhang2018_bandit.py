"""Algorithm 2 and Theorem 4 of Zhang and Venkitasubramaniam 2018: regret from one answer a user."""

import math

from learner.papers.descent_runs import Normals, Users, bandit_losses
from learner.papers.experiment import Claim, Json
from learner.papers.verdicts import all_of, at_most
from learner.papers.zhang2018_regret import DELTA, LIPSCHITZ, LOSS_BOUND, RADIUS, Regret, by_sigma, growth
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.mutual_information import bandit_gradient_bound, bandit_mi
from privacy.arrays import Array


class Bandit(Regret):
    name = "bandit"
    title = "Regret from one answer a user, and Theorem 4"

    def __init__(self, *, small: bool) -> None:
        horizons = [2**power for power in (range(4, 11, 2) if small else range(8, 21, 2))]
        super().__init__(horizons=horizons, sigmas=(0.0, 10.0, 100.0), dimension=2, streams=6, runs=1)
        self.seeds = range(1, 3 if small else 21)
        self.runs = len(self.seeds) * 6

    def exploration(self, horizon: int) -> float:
        """Return delta of order T^(-1/4), the minimiser of the bound without L and sigma, at most half the radius."""
        best: float = math.sqrt(RADIUS * self.dimension * LOSS_BOUND / (3 * LIPSCHITZ)) * horizon**-0.25
        return min(best, RADIUS / 2)

    def power(self, horizon: int, sigma: float) -> float:
        """Return the mean square length that the bound gives one noisy estimate."""
        length = bandit_gradient_bound(self.dimension, LOSS_BOUND, self.exploration(horizon), LIPSCHITZ)
        return length**2 + self.dimension * sigma**2

    def step_size(self, horizon: int, sigma: float) -> float:
        return RADIUS / math.sqrt(self.power(horizon, sigma) * horizon)

    def bound(self, horizon: int, sigma: float) -> float:
        return RADIUS * math.sqrt(self.power(horizon, sigma) * horizon) + 3 * horizon * LIPSCHITZ * self.exploration(
            horizon
        )

    def printed_bound(self, horizon: int) -> float:
        """Return Theorem 4 as printed, F over eta, without noise at the rates it names: eta of order T^(-3/4)."""
        dimension, delta = self.dimension, self.exploration(horizon)
        first = self.settings["horizons"][0]
        eta: float = self.step_size(first, 0.0) * (horizon / first) ** -0.75
        square: float = dimension**2 * (LOSS_BOUND / eta + LIPSCHITZ) ** 2
        return RADIUS**2 / (2 * eta) + eta / 2 * horizon * square + 3 * horizon * LIPSCHITZ * delta

    def losses(self, users: Users, horizon: int, sigmas: Array, steps: Array, rng: Normals) -> Array:
        return bandit_losses(
            users,
            sigmas=sigmas,
            step_sizes=steps,
            exploration=self.exploration(horizon),
            radius=RADIUS,
            runs=self.settings["runs_a_stream"],
            rng=rng,
        )

    def claims(self, result: Json) -> list[Claim]:
        early, late = self.settings["horizons"][-2:]
        printed = math.log(self.printed_bound(late) / self.printed_bound(early)) / math.log(late / early)
        corrected = math.log(self.bound(late, 0.0) / self.bound(early, 0.0)) / math.log(late / early)
        horizons, rows = self.settings["horizons"], self.rows(result)
        # The mean of the exponents between neighbours is the exponent between the ends.
        mean = {sigma: growth(cells, horizons, -3, -1) for sigma, cells, _ in rows}
        return [
            self.bounded(
                "Theorem 4 with F/delta: the regret is at most B^2/(2 eta) + (eta/2) T (d^2 (F/delta + L)^2 "
                "+ d sigma^2) + 3 T L delta.",
                f", which grows with exponent {corrected:.2f}",
                result,
            ),
            Claim(
                "Theorem 4 as printed, with F/eta, gives a sublinear bound.",
                f"it grows with exponent {printed:.2f} at eta of order T^(-3/4)",
                printed < 1,
                "exponent of the printed bound over the last factor of four below 1",
            ),
            Claim(
                "The regret is O(T^(3/4)).",
                f"mean of the last two exponents: {by_sigma(mean)}",
                all_of(at_most(value, 0.8) for value in mean.values()),
                "at most .8 at every sigma",
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        horizon, dimension = self.settings["horizons"][-1], self.dimension
        delta, lines = self.exploration(horizon), []
        for sigma in self.settings["sigmas"][1:]:
            nats = bandit_mi(dimension, LOSS_BOUND, delta, LIPSCHITZ, sigma)
            # What is sent stays inside the ball, where F bounds the loss.
            rho = 2 * (bandit_gradient_bound(dimension, LOSS_BOUND, delta) / sigma) ** 2
            lines.append(
                f"sigma {sigma:g} at T = 2^{round(math.log2(horizon))}: {nats:.3f} nats (Theorem 3); charged are rho "
                f"{rho:.3g}, epsilon {zcdp_epsilon(rho, DELTA):.3g} at delta {DELTA:g}."
            )
        return lines
