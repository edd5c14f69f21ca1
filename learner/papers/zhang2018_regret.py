"""Regret of noisy online gradient descent by Zhang and Venkitasubramaniam 2018: what both algorithms share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from learner.papers.descent_runs import Normals, SideBySide, Users, draw_users
from learner.papers.experiment import Claim, Data, Experiment, Json, PaperTable, cell, shown
from learner.papers.verdicts import all_of, at_most, exponent
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
    def step_size(self, horizon: int, sigma: float) -> float:
        """Return the learning rate that the theorem sets."""

    @abstractmethod
    def bound(self, horizon: int, sigma: float) -> float:
        """Return the theorem's bound at that learning rate."""

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
        horizons = self.settings["horizons"]
        rows = [
            [f"{sigma:g}"]
            + [
                f"{shown(at, 1)} ({at['value'] / self.bound(T, sigma):.2f})"
                for T, at in zip(horizons, cells, strict=True)
            ]
            + [shown(exponents[-1])]
            for sigma, cells, exponents in self.rows(result)
        ]
        header = ["sigma", *(f"T = 2^{round(math.log2(horizon))}" for horizon in horizons), "last exponent"]
        return [PaperTable("Regret, and in brackets its share of the bound", header, rows)]


def by_sigma(values: Mapping[float, Json]) -> str:
    return ", ".join(f"{shown(value)} (sigma {sigma:g})" for sigma, value in values.items())
