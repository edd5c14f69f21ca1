import numpy as np

from learner.papers.experiment import Json
from learner.papers.ghassemi_curves import BatchSizes, spread_ratio


def parts(scale: float, experiment: BatchSizes, seeds: int = 20) -> list[Json]:
    rng = np.random.default_rng(1)
    scales = np.linspace(1, scale, len(experiment.settings["sizes"]))[:, None]
    return [{"generated": (0.3 + 0.1 * scales * rng.normal(size=(2, 5, 30))).tolist()} for _ in range(seeds)]


def test_the_ratio_is_of_the_largest_and_the_smallest_batch_of_mini_batches() -> None:
    errors = np.zeros((2, 3, 4))
    errors[0] = [[0, 2, 0, 2], [5, 5, 5, 5], [0, 1, 0, 1]]
    errors[1] = 9
    assert spread_ratio(errors) == 0.5


def test_a_smaller_spread_is_told_from_the_same_one_and_from_an_open_one() -> None:
    experiment = BatchSizes(small=True)
    answers = [experiment.claims(experiment.combine(parts(scale, experiment)))[0].holds for scale in (0.5, 0.8, 1.0)]
    assert answers == [True, None, False]
