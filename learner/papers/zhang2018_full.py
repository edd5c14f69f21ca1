"""Algorithm 1 and Theorem 2 of Zhang and Venkitasubramaniam 2018: regret where users send whole gradients."""

import math

from learner.papers.descent_runs import Normals, Users, full_information_losses
from learner.papers.experiment import Claim, Json
from learner.papers.verdicts import all_of, at_most
from learner.papers.zhang2018_regret import DELTA, LIPSCHITZ, RADIUS, Regret, by_sigma
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.mutual_information import gaussian_mi
from privacy.arrays import Array


class FullInformationRegret(Regret):
    name = "full_information"
    title = "Regret with full information"

    def __init__(self, *, small: bool) -> None:
        horizons = [2**6, 2**8, 2**10] if small else [2**power for power in range(8, 19, 2)]
        sigmas = (0.0, 1.0) if small else (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
        super().__init__(horizons=horizons, sigmas=sigmas, dimension=5, streams=6, runs=1)
        self.seeds = range(1, 3 if small else 21)
        self.runs = len(self.seeds) * 6

    def power(self, sigma: float) -> float:
        """Return the mean square length that the bound gives one noisy gradient."""
        return LIPSCHITZ**2 + self.dimension * sigma**2

    def step_size(self, horizon: int, sigma: float) -> float:
        return RADIUS / math.sqrt(self.power(sigma) * horizon)

    def bound(self, horizon: int, sigma: float) -> float:
        return RADIUS * math.sqrt(self.power(sigma) * horizon)

    def losses(self, users: Users, horizon: int, sigmas: Array, steps: Array, rng: Normals) -> Array:
        return full_information_losses(
            users, sigmas=sigmas, step_sizes=steps, radius=RADIUS, runs=self.settings["runs_a_stream"], rng=rng
        )

    def claims(self, result: Json) -> list[Claim]:
        last = {sigma: exponents[-1] for sigma, _, exponents in self.rows(result)}
        text = by_sigma(last)
        return [
            self.bounded("Theorem 2: the regret is at most B sqrt((L^2 + d sigma^2) T).", "", result),
            Claim(
                "The regret is sublinear.",
                f"exponents over the last factor of four in T: {text}",
                all_of(at_most(value, 1.0) for value in last.values()),
                "every last exponent below 1",
            ),
            Claim(
                "The regret is of order sqrt(T).",
                text,
                all_of(at_most(value, 0.6) for value in last.values()),
                "every last exponent at most .6",
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        dimension, lines = self.dimension, []
        for sigma in self.settings["sigmas"][1:]:
            rho = 2 * (LIPSCHITZ / sigma) ** 2
            lines.append(
                f"sigma {sigma:g}: {gaussian_mi(dimension, LIPSCHITZ, sigma):.4f} nats; charged are rho {rho:.3g}, "
                f"epsilon {zcdp_epsilon(rho, DELTA):.2f} at delta {DELTA:g}, once for each user whatever T is."
            )
        return lines
