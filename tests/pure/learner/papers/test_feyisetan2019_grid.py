import numpy as np

from learner.papers.experiment import ClaimVerdict, Json
from learner.papers.feyisetan2019_grid import GateGrid


def answers(by_k: float, by_rate: float, gain: float) -> list[ClaimVerdict]:
    experiment = GateGrid(small=True)
    rng = np.random.default_rng(6)

    def part() -> Json:
        log = rng.normal(0.8, 0.05)
        accuracy = log + by_rate * np.arange(2)[:, None] + by_k * np.arange(2) + 0.002 * rng.normal(size=(2, 2))
        passed = np.array([[100.0, 20.0], [110.0, 40.0]])
        random = log + np.array([0.0, 0.05]) + 0.002 * rng.normal(size=2)
        return {
            "grid": np.stack([passed, accuracy], axis=-1).tolist(),
            "curves": {"uncertainty": [*(random + gain + 0.002 * rng.normal(size=2)), 0.9], "random": [*random, 0.9]},
            "everything": log + 0.02,
            "texts": 1_000,
        }

    return [claim.holds for claim in experiment.claims(experiment.combine([part() for _ in range(20)]))]


def test_effects_far_smaller_than_the_scatter_of_logs_are_decided() -> None:
    small_k_better, sampling_harms, same_budget, *_ = answers(-0.01, 0.01, 0.0)
    assert (small_k_better, sampling_harms, same_budget) == (True, True, True)
    assert answers(0.01, -0.01, 0.0)[:2] == [False, False]


def test_no_effect_is_not_decided() -> None:
    assert answers(0.0, 0.0, 0.0)[:2] == [None, None]


def test_two_gates_with_one_budget_that_differ_are_found() -> None:
    assert answers(-0.01, 0.05, 0.0)[2] is False
