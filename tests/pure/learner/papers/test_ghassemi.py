from typing import Any

import numpy as np

from learner.papers.experiment import ClaimVerdict, Json
from learner.papers.ghassemi_curves import LOW_RATE, BatchSizes, GeneratedCurves, Slabs, spaced, spread_ratio


def claims_of(gap: float, scatter: float) -> dict[str, ClaimVerdict]:
    """Return the answers where FLSW errs by `gap` more than FLMB in runs that differ by `scatter` otherwise."""
    experiment = GeneratedCurves(small=True)
    experiment.settings = experiment.settings | {"steps": 4_000}
    checkpoints = len(spaced(4_000))
    rng = np.random.default_rng(5)

    def part() -> Json:
        # A stream's luck is common to all designs and far larger than what lies between them.
        luck = rng.normal(0.3, 0.1, size=(10, 1))
        made: dict[str, Any] = {}
        for name in experiment.designs:
            errors = luck + scatter * rng.normal(size=(10, checkpoints)) + gap * name.startswith("FLSW")
            labels = np.tile(np.linspace(5, 2_000, checkpoints), (10, 1))
            made[name] = {"errors": errors.tolist(), "labels": labels.tolist()}
        return made | {"dperm": [0.2, 0.21], "non-private batch": [0.1, 0.11], "majority": 0.5}

    found = experiment.combine([part() for _ in range(20)])
    return {claim.text: claim.holds for claim in experiment.claims(found)}


PER_LABEL = "FLMB errs less than FLSW for the same number of labels."


def test_a_small_gap_in_the_same_runs_is_seen_beneath_their_luck() -> None:
    assert claims_of(0.01, 0.01)[PER_LABEL] is True
    assert claims_of(-0.01, 0.01)[PER_LABEL] is False


def test_no_gap_is_not_decided() -> None:
    assert claims_of(0.0, 0.01)[PER_LABEL] is None


def test_screens_that_differ_by_luck_alone_are_as_good_as_each_other() -> None:
    answers = claims_of(0.0, 0.01)
    assert answers["The difference between Bernoulli and exponential selection is negligible."] is True


def answers(shrinking_power: float, harm: float) -> list[ClaimVerdict]:
    experiment = Slabs(small=True)
    steps = np.array(experiment.iterations, dtype=float)
    rng = np.random.default_rng(2)

    def part() -> dict[str, dict[str, list[list[float]]]]:
        made = {}
        for name in experiment.designs:
            shrinks = name.endswith("shrinking")
            labels = LOW_RATE * steps**shrinking_power if shrinks else 0.7 * steps
            scatter = 0.002 * rng.normal(size=(10, len(steps)))
            made[name] = {
                "errors": (0.2 + harm * shrinks + scatter).tolist(),
                "labels": (labels * (1 + 0.01 * rng.normal(size=(10, 1)))).tolist(),
            }
        return made

    return [claim.holds for claim in experiment.claims(experiment.combine([part() for _ in range(20)]))]


def test_a_line_is_told_from_a_power_and_harm_from_none() -> None:
    assert answers(1.0, 0.0) == [True, False, True, False]
    assert answers(0.7, 0.05) == [True, True, False, True]


def test_harm_of_just_the_bound_is_not_decided() -> None:
    assert answers(1.0, 0.02)[2:] == [None, None]


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
