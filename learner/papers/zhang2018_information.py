"""Theorems 1 and 3: the bounds on mutual information beside its estimate and beside differential privacy."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, ndtr

from learner.papers.experiment import Claim, ClaimVerdict, Data, Experiment, Json, PaperTable, cell, shown
from learner.papers.verdicts import all_of, at_most
from privacy.accounting.composition import zcdp_epsilon
from privacy.accounting.mutual_information import bandit_mi, gaussian_mi
from privacy.arrays import Array

LIPSCHITZ, DELTA = 1.0, 1e-6
POPULATIONS = ("first step", "late step", "sphere")
TITLES = {
    "first step": "logistic users at w = 0",
    "late step": "logistic users at w of norm 1.5",
    "sphere": "gradients on the sphere of radius L",
}
# The page tabulates these; the JSON has all.
TABLED_SIGMAS = frozenset({0.1, 0.5, 2.0, 8.0})


class UserInformation(Experiment):
    name = "information"
    title = "Mutual information: bounds, estimates, and what the ledger charges"

    def __init__(self, *, small: bool) -> None:
        self.settings: Json = {
            "dimensions": [5] if small else [2, 5, 20],
            "sigmas": [0.5, 2.0] if small else [0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0],
            "users": 200 if small else 3_000,
            "draws": 500 if small else 1_000,
            "truth_norm": 1.5,
            "bandit": {
                "dimension": 2,
                "radius": 2.0,
                "exploration": 0.2,
                "users": 20 if small else 60,
                "directions": 64 if small else 720,
                "sigmas": [20.0, 100.0] if small else [5.0, 10.0, 20.0, 50.0, 100.0],
                "draws": 100 if small else 200,
            },
        }
        self.seeds = range(61, 63 if small else 81)
        self.runs = len(self.seeds) * self.settings["draws"]

    def run(self, seed: int, data: Data) -> Json:
        return {
            "full": {
                str(dimension): {
                    name: [self.full(name, dimension, sigma, seed) for sigma in self.settings["sigmas"]]
                    for name in POPULATIONS
                }
                for dimension in self.settings["dimensions"]
            },
            "bandit": [self.bandit(sigma, seed) for sigma in self.settings["bandit"]["sigmas"]],
        }

    def combine(self, parts: Sequence[Json]) -> Json:
        return {
            "full": {
                dimension: {
                    name: [
                        cell(means) for means in zip(*(part["full"][dimension][name] for part in parts), strict=True)
                    ]
                    for name in POPULATIONS
                }
                for dimension in parts[0]["full"]
            },
            "bandit": [cell(means) for means in zip(*(part["bandit"] for part in parts), strict=True)],
        }

    def full(self, name: str, dimension: int, sigma: float, seed: int) -> float:
        rng = np.random.default_rng([seed, dimension, POPULATIONS.index(name)])
        rows, truth = users_of(self.settings["users"], dimension, self.settings["truth_norm"], rng)
        weights = {"first step": np.zeros(dimension), "late step": truth}.get(name)
        gradients = LIPSCHITZ * rows if weights is None else -expit(-(rows @ weights))[:, None] * rows
        return float(information(gradients, sigma, draws=self.settings["draws"], rng=rng).mean())

    def bandit(self, sigma: float, seed: int) -> float:
        settings = self.settings["bandit"]
        rng = np.random.default_rng([seed, 3])
        rows, _ = users_of(settings["users"], settings["dimension"], self.settings["truth_norm"], rng)
        turns = 2 * np.pi * np.arange(settings["directions"]) / settings["directions"]
        directions = np.stack([np.cos(turns), np.sin(turns)], axis=1)
        answers = np.logaddexp(0, -settings["exploration"] * rows @ directions.T)
        scale = settings["dimension"] / settings["exploration"]
        return float(bandit_information(answers, directions, scale, sigma, draws=settings["draws"], rng=rng).mean())

    def by_dimension(self, result: Json) -> list[tuple[int, Json]]:
        return [(dimension, result["full"][str(dimension)]) for dimension in self.settings["dimensions"]]

    def bandit_bound(self, sigma: float) -> float:
        settings = self.settings["bandit"]
        loss = math.log1p(math.exp(settings["radius"]))
        return bandit_mi(settings["dimension"], loss, settings["exploration"], LIPSCHITZ, sigma)

    def claims(self, result: Json) -> list[Claim]:
        full = [
            (at, gaussian_mi(dimension, LIPSCHITZ, sigma))
            for dimension, names in self.by_dimension(result)
            for cells in names.values()
            for sigma, at in zip(self.settings["sigmas"], cells, strict=True)
        ]
        bandit = [
            (at, self.bandit_bound(sigma))
            for sigma, at in zip(self.settings["bandit"]["sigmas"], result["bandit"], strict=True)
        ]
        example = self.example()
        return [
            Claim(
                "Theorem 1: I(f; z) < (d/2) ln(1 + L^2/(d sigma^2)).",
                *_bounded(full, "for every population, dimension and sigma", 2),
            ),
            Claim(
                "Theorem 3: I(f; z) < (d/2) ln(1 + d (F/delta + L)^2/sigma^2) for one answer a user.",
                *_bounded(bandit, "at every sigma", 4),
            ),
            Claim(
                "A small bound on mutual information protects each user.",
                f"at .1 nats, d = 20: sigma {example['sigma']:.2f}, epsilon {example['epsilon']:.2f} at delta 1e-6; "
                f"users with opposite gradients are told apart in {example['apart']:.0%} of cases",
                example["epsilon"] <= 1,
                "the same noise is worth epsilon at most 1",
            ),
        ]

    def example(self) -> dict[str, float]:
        """Return what noise that keeps a tenth of a nat in 20 dimensions is worth otherwise."""
        sigma = float(brentq(lambda at: gaussian_mi(20, LIPSCHITZ, at) - 0.1, 0.1, 1e3))
        epsilon = zcdp_epsilon(2 * (LIPSCHITZ / sigma) ** 2, DELTA)
        return {"sigma": sigma, "epsilon": epsilon, "apart": two_users_told_apart(2 * LIPSCHITZ, sigma)}

    def tables(self, result: Json) -> list[PaperTable]:
        rows = []
        for dimension, names in self.by_dimension(result):
            for place, sigma in enumerate(self.settings["sigmas"]):
                if sigma not in TABLED_SIGMAS:
                    continue
                rho = 2 * (LIPSCHITZ / sigma) ** 2
                rows.append(
                    [str(dimension), f"{sigma:g}", f"{gaussian_mi(dimension, LIPSCHITZ, sigma):.4f}"]
                    + [shown(names[name][place], 4) for name in POPULATIONS]
                    + [
                        f"{rho:.3g}",
                        f"{zcdp_epsilon(rho, DELTA):.2f}",
                        f"{two_users_told_apart(2 * LIPSCHITZ, sigma):.3f}",
                    ]
                )
        header = [
            "d",
            "sigma",
            "bound, nats",
            *(TITLES[name] for name in POPULATIONS),
            "rho",
            "epsilon at 1e-6",
            "told apart",
        ]
        bandit = [
            [f"{sigma:g}", f"{self.bandit_bound(sigma):.3f}", shown(at, 5)]
            for sigma, at in zip(self.settings["bandit"]["sigmas"], result["bandit"], strict=True)
        ]
        return [
            PaperTable("Nats that one gradient tells about its user, and the charge for the same noise", header, rows),
            PaperTable(
                "The same for one answer, d = 2, exploration .2", ("sigma", "bound, nats", "estimate, nats"), bandit
            ),
        ]

    def costs(self, result: Json) -> list[str]:
        return [
            "The ledger charges rho = 2 L^2/sigma^2 a user (any two gradients differ by at most 2 L) and shows the "
            "nats; 'told apart' is how often the better guess is right between two users with opposite gradients."
        ]


def _bounded(pairs: Sequence[tuple[Json, float]], where: str, digits: int) -> tuple[str, ClaimVerdict, str]:
    """Return our figure, the answer and the rule of a claim that estimates are at most their bounds."""
    shares = [at["value"] / bound for at, bound in pairs]
    answers = [at_most(at, bound) for at, bound in pairs]
    return (
        f"estimates reach {min(shares):.{digits}f} to {max(shares):.{digits}f} of the bound: surely under it at "
        f"{answers.count(True)} of {len(answers)} points, surely over it at {answers.count(False)}",
        all_of(answers),
        f"estimate at most the bound {where}",
    )


def users_of(count: int, dimension: int, truth_norm: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return rows on the unit sphere times their labels, and the weights that the labels follow."""
    rows = rng.standard_normal((count, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    truth = np.zeros(dimension)
    truth[0] = truth_norm
    signs = np.where(rng.random(count) < expit(rows @ truth), 1.0, -1.0)
    return rows * signs[:, None], truth


BLOCK_DRAWS = 250


def information(gradients: Array, sigma: float, *, draws: int, rng: np.random.Generator) -> Array:
    r"""Return draws whose mean is the mutual information of a user, uniform among n, and their noisy gradient.

    Each draw is :math:`\ln p(\tilde z \mid z_k) - \ln \frac1n \sum_j p(\tilde z \mid z_j)` for a random user k:
    unbiased for this population, and never more than ln n.
    """
    found = []
    squares = (gradients**2).sum(axis=1)
    for start in range(0, draws, BLOCK_DRAWS):
        count = min(BLOCK_DRAWS, draws - start)
        users = rng.integers(0, len(gradients), size=count)
        seen = gradients[users] + sigma * rng.standard_normal((count, gradients.shape[1]))
        # The square of what was seen is in every exponent and cancels.
        exponents = (seen @ gradients.T - squares / 2) / sigma**2
        own = exponents[np.arange(count), users]
        found.append(own - logsumexp(exponents, axis=1) + math.log(len(gradients)))
    return np.concatenate(found)


def bandit_information(
    answers: Array, directions: Array, scale: float, sigma: float, *, draws: int, rng: np.random.Generator
) -> Array:
    r"""As `information` for one-point estimates :math:`s\,\varphi_k(e)\,e`, the direction unknown to who looks."""
    sent = scale * answers[:, :, None] * directions
    squares = (sent**2).sum(axis=2)
    found = np.empty(draws)
    for place in range(draws):
        user, direction = rng.integers(0, answers.shape[0]), rng.integers(0, answers.shape[1])
        seen = sent[user, direction] + sigma * rng.standard_normal(directions.shape[1])
        exponents = logsumexp((sent @ seen - squares / 2) / sigma**2, axis=1)
        found[place] = exponents[user] - logsumexp(exponents) + math.log(len(answers))
    return found


def two_users_told_apart(distance: float, sigma: float) -> float:
    """Return how often the best guess is right which of two equally likely users sent a noisy gradient."""
    return float(ndtr(distance / (2 * sigma)))
