"""Exponents of regrets that are made up, with their verdicts, and seeds that run together as each would alone."""

import numpy as np
import pytest

from learner.papers.descent_runs import SideBySide
from learner.papers.experiment import ClaimVerdict, Data, Json
from learner.papers.zhang2018_regret import Bandit, FullInformationRegret, Regret, growth, slopes

SUBLINEAR, ROOT = "The regret is sublinear.", "The regret is of order sqrt(T)."


def made_up(experiment: Regret, power: float, seeds: range) -> Json:
    """Return the result of regrets that grow with a power of T; a stream scatters by a tenth, as the real ones do."""
    streams, sigmas = experiment.settings["streams"], len(experiment.settings["sigmas"])

    def part(seed: int) -> Json:
        rng = np.random.default_rng([seed, round(100 * power)])
        horizons = experiment.settings["horizons"]
        scatter = 1 + 0.1 * rng.normal(size=(len(horizons), sigmas, streams))
        return {"regret": (np.power(horizons, power)[:, None, None] * scatter).tolist()}

    return experiment.combine([part(seed) for seed in seeds])


def answer(power: float, seeds: range, text: str = ROOT) -> ClaimVerdict:
    experiment = FullInformationRegret(small=False)
    found = experiment.claims(made_up(experiment, power, seeds))
    return next(claim.holds for claim in found if claim.text == text)


@pytest.mark.statistical
def test_the_verdict_does_not_turn_with_the_seeds() -> None:
    """Twenty times twenty seeds on either side of .6 and on it; a wrong yes or no in 120 answers is 1 in 250."""
    groups = [range(start, start + 20) for start in range(0, 400, 20)]
    assert {answer(0.5, seeds) for seeds in groups} == {True}
    assert {answer(0.7, seeds) for seeds in groups} == {False}
    assert {answer(0.6, seeds) for seeds in groups} == {None}
    assert {answer(0.7, seeds, SUBLINEAR) for seeds in groups} == {True}
    assert {answer(1.0, seeds, SUBLINEAR) for seeds in groups} == {None}


def test_exponents_are_of_the_power() -> None:
    cells: list[Json] = [{"value": 3 * horizon**0.75, "error": 0.0} for horizon in (16, 64, 256)]
    assert [at["value"] for at in slopes(cells, (16, 64, 256))] == pytest.approx([0.75, 0.75])
    assert growth(cells, (16, 64, 256), 0, 2)["value"] == pytest.approx(0.75)


@pytest.mark.parametrize("kind", [FullInformationRegret, Bandit])
def test_seeds_together_are_what_they_are_alone(kind: type) -> None:
    experiment = kind(small=True)
    experiment.settings = experiment.settings | {"horizons": [64, 300], "streams": 2}
    together = experiment.run_together([4, 5, 6], Data())
    assert together[1]["regret"] == [pytest.approx(np.array(row)) for row in experiment.run(5, Data())["regret"]]
    assert together[0] != together[1]


def test_generators_side_by_side_draw_what_each_draws_alone() -> None:
    both = SideBySide([np.random.default_rng(seed) for seed in (1, 2)]).standard_normal((3, 4, 5))
    assert np.array_equal(both[:, 2:], np.random.default_rng(2).standard_normal((3, 2, 5)))
