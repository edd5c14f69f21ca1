import math

import numpy as np
import pytest

from learner.papers.experiment import ClaimVerdict, Json, cell, interval
from learner.papers.verdicts import above, all_of, any_of, apart_from, at_most, exponent, jackknife, opposite

SEEDS = 400
RUNS = 200


def drawn(mean: float, seed: int, runs: int = RUNS) -> Json:
    return cell(np.random.default_rng([seed, round(1_000 * abs(mean))]).normal(mean, 1, size=runs))


def by_the_mean_alone(found: Json, bound: float) -> bool:
    """The wrong twin: what a page said before it minded the error."""
    return bool(found["value"] <= bound)


@pytest.mark.parametrize(("value", "answer"), [(0.0, True), (2.0, False), (1.1, None), (0.9, None)])
def test_a_figure_is_decided_outside_its_interval_alone(value: float, answer: ClaimVerdict) -> None:
    found = interval(value, 0.05)
    assert at_most(found, 1.0) is answer
    assert above(found, 1.0) is opposite(answer)


def test_one_run_decides_nothing() -> None:
    assert at_most(cell([3.0]), 4.0) is None
    assert at_most(cell([3.0, 3.1]), 4.0) is True


def test_all_and_any() -> None:
    assert all_of([True, None]) is None
    assert all_of([True, None, False]) is False
    assert all_of([True, True]) is True
    assert any_of([False, None]) is None
    assert any_of([False, None, True]) is True
    assert any_of([False, False]) is False


@pytest.mark.statistical
def test_no_two_seeds_contradict_each_other_where_the_mean_alone_flips() -> None:
    """A truth on the bound itself, the worst case: a wrong yes or no 3 in 100,000, the twin every second time."""
    answers = [at_most(drawn(0.0, seed), 0.0) for seed in range(SEEDS)]
    assert set(answers) == {None}
    twins = [by_the_mean_alone(drawn(0.0, seed), 0.0) for seed in range(SEEDS)]
    assert 0.4 < np.mean(twins) < 0.6


@pytest.mark.statistical
def test_what_is_clear_is_decided() -> None:
    """Eight standard errors off the bound: undecided 3 in 100,000."""
    off = 8 / math.sqrt(RUNS)
    assert {at_most(drawn(-off, seed), 0.0) for seed in range(SEEDS)} == {True}
    assert {at_most(drawn(off, seed), 0.0) for seed in range(SEEDS)} == {False}


@pytest.mark.statistical
def test_paired_differences_decide_what_two_means_cannot() -> None:
    """Runs that share a stream differ by .1 with an error of .01 / sqrt(200); their means by themselves, of 1."""
    rng = np.random.default_rng(1)
    shared = rng.normal(size=RUNS)
    first, second = (shared + level + rng.normal(0, 0.01, size=RUNS) for level in (0.1, 0.0))
    assert above(cell(first - second), 0.0) is True
    assert above(apart_from(cell(first), cell(second)), 0.0) is None


@pytest.mark.statistical
def test_exponents_have_the_error_that_they_scatter_by() -> None:
    """Means of 160 that grow like a root: the stated error is their scatter within a tenth, 1,000 draws."""
    rng = np.random.default_rng(2)
    horizons = (4.0**6, 4.0**7)
    weight = 1 / math.log(4)
    found = [
        exponent(
            [cell(math.sqrt(horizon) * (1 + 0.126 * rng.normal(size=160))) for horizon in horizons], [-weight, weight]
        )
        for _ in range(1_000)
    ]
    values, errors = np.array([at["value"] for at in found]), np.array([at["error"] for at in found])
    assert values.mean() == pytest.approx(0.5, abs=0.002)
    assert errors.mean() == pytest.approx(values.std(), rel=0.1)
    assert np.mean([at["low"] < 0.5 < at["high"] for at in found]) >= 0.998


@pytest.mark.statistical
def test_leaving_out_a_seed_gives_the_error_of_a_ratio_of_spreads() -> None:
    """Twenty seeds of ten runs, 300 draws: the stated error within a fifth of the scatter, in the mean."""
    rng = np.random.default_rng(3)

    def ratio(runs: np.ndarray) -> float:
        low, high = runs.std(axis=-1, ddof=1)
        return float(low / high)

    found = [jackknife([rng.normal(size=(2, 10)) * [[0.7], [1.0]] for _ in range(20)], ratio) for _ in range(300)]
    values, errors = np.array([at["value"] for at in found]), np.array([at["error"] for at in found])
    assert values.mean() == pytest.approx(0.7, abs=0.02)
    assert errors.mean() == pytest.approx(values.std(), rel=0.2)
