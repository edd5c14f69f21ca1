"""Regret of noisy online gradient descent by Zhang and Venkitasubramaniam 2018: Algorithms 1 and 2."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from learner.papers.descent_runs import Normals, SideBySide, Users, bandit_losses, draw_users, full_information_losses
from learner.papers.experiment import Claim, Data, Experiment, Json, PaperTable, cell, shown
from learner.papers.verdicts import all_of, at_most, exponent
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.mutual_information import bandit_gradient_bound, bandit_mi, gaussian_mi
from privacy.arrays import Array

RADIUS, LIPSCHITZ, TRUTH_NORM, DELTA = 2.0, 1.0, 1.5, 1e-6
LOSS_BOUND = math.log1p(math.exp(RADIUS))


def growth(cells: Sequence[Json], horizons: Sequence[int], first: int, last: int) -> Json:
    """Return the exponent of growth between two places of the horizons, whose users are independent."""
    weight = 1 / math.log(horizons[last] / horizons[first])
    return exponent([cells[first], cells[last]], [-weight, weight])


def slopes(cells: Sequence[Json], horizons: Sequence[int]) -> list[Json]:
    return [growth(cells, horizons, place, place + 1) for place in range(len(cells) - 1)]


class Regret(Experiment, ABC):
    together = 10

    def __init__(
        self, *, horizons: Sequence[int], sigmas: Sequence[float], dimension: int, streams: int, runs: int
    ) -> None:
        self.settings: Json = {
            "horizons": list(horizons),
            "sigmas": list(sigmas),
            "dimension": dimension,
            "radius": RADIUS,
            "truth_norm": TRUTH_NORM,
            "streams": streams,
            "runs_a_stream": runs,
        }

    @property
    def dimension(self) -> int:
        return int(self.settings["dimension"])

    def run(self, seed: int, data: Data) -> Json:
        return self.run_together([seed], data)[0]

    def run_together(self, seeds: Sequence[int], data: Data) -> list[Json]:
        found = [self.regrets(horizon, seeds) for horizon in self.settings["horizons"]]
        return [{"regret": list(regrets)} for regrets in zip(*found, strict=True)]

    def regrets(self, horizon: int, seeds: Sequence[int]) -> list[list[list[float]]]:
        """Return for each seed and sigma the regrets of every stream, averaged over its runs, which share their users.

        A step costs little more for many streams than for few, so that several seeds take it together.
        """
        streams = self.settings["streams"]
        rows = np.empty((len(seeds) * streams, horizon, self.dimension))
        for place, seed in enumerate(seeds):
            rows[place * streams : (place + 1) * streams] = draw_users(
                streams=streams,
                horizon=horizon,
                dimension=self.dimension,
                truth_norm=self.settings["truth_norm"],
                rng=np.random.default_rng([seed, horizon]),
            ).rows
        users = Users(rows)
        sigmas = np.array(self.settings["sigmas"])
        steps = np.array([self.step_size(horizon, sigma) for sigma in sigmas])
        noise = SideBySide([np.random.default_rng([seed, horizon, 1]) for seed in seeds])
        losses = self.losses(users, horizon, sigmas, steps, noise)
        regret = losses - users.best_losses(self.settings["radius"])[:, None, None]
        means: list[list[list[float]]] = regret.mean(axis=2).reshape(len(seeds), streams, -1).swapaxes(1, 2).tolist()
        return means

    @abstractmethod
    def losses(self, users: Users, horizon: int, sigmas: Array, steps: Array, rng: Normals) -> Array:
        """Return total losses, shape (streams, sigmas, runs)."""

    @abstractmethod
    def step_size(self, horizon: int, sigma: float) -> float: ...

    @abstractmethod
    def bound(self, horizon: int, sigma: float) -> float: ...

    def combine(self, parts: Sequence[Json]) -> Json:
        regrets = np.concatenate([np.array(part["regret"]) for part in parts], axis=2)
        return {
            "regret": [
                [cell(regrets[place, at]) for place in range(len(self.settings["horizons"]))]
                for at in range(len(self.settings["sigmas"]))
            ]
        }

    def rows(self, result: Json) -> list[tuple[float, list[Json], list[Json]]]:
        return [
            (sigma, cells, slopes(cells, self.settings["horizons"]))
            for sigma, cells in zip(self.settings["sigmas"], result["regret"], strict=True)
        ]

    def bounded(self, text: str, ours: str, result: Json) -> Claim:
        pairs = [
            (at, self.bound(horizon, sigma))
            for sigma, cells, _ in self.rows(result)
            for horizon, at in zip(self.settings["horizons"], cells, strict=True)
        ]
        share = max(at["value"] / bound for at, bound in pairs)
        return Claim(
            text,
            f"at most {share:.2f} of the bound{ours}",
            all_of(at_most(at, bound) for at, bound in pairs),
            "mean regret at most the bound at every T and sigma",
        )

    def tables(self, result: Json) -> list[PaperTable]:
        # Every other horizon, the last among them; the JSON has all.
        horizons = self.settings["horizons"][::-2][::-1]
        rows = [
            [f"{sigma:g}"]
            + [
                f"{shown(at, 1)} ({at['value'] / self.bound(T, sigma):.2f})"
                for T, at in zip(horizons, cells[::-2][::-1], strict=True)
            ]
            + [shown(exponents[-1])]
            for sigma, cells, exponents in self.rows(result)
        ]
        header = ["sigma", *(f"T = 2^{round(math.log2(horizon))}" for horizon in horizons), "last exponent"]
        return [PaperTable("Regret, and in brackets its share of the bound", header, rows)]


def by_sigma(values: Mapping[float, Json]) -> str:
    return ", ".join(f"{shown(value)} (sigma {sigma:g})" for sigma, value in values.items())


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
