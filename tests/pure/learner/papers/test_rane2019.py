import json
from pathlib import Path

import numpy as np
import pytest

from learner.papers.experiment import agree, cell
from learner.papers.plane_learners import (
    GAPS,
    POINTS,
    coin,
    constellation,
    draw_starts,
    learn_until_separated,
    solve_svms,
    true_scale,
)
from learner.papers.rane2019 import Separation
from learner.papers.rane2019_version_space import arc_bounds, learn_until_settled

RESULTS = Path(__file__).parents[4] / "docs" / "results" / "rane2019"


def points_of(gap: float = 0.2):  # type: ignore[no-untyped-def]
    return constellation(POINTS, gap)


@pytest.mark.parametrize("cost", [1.0, 0.05])
def test_machines_close_the_duality_gap(cost: float) -> None:
    rng = np.random.default_rng(1)
    points = points_of()
    rows = points.signed[np.argsort(rng.random((60, 120)), axis=1)[:, :20]]
    # Labels that contradict each other must be solved as well.
    rows[:20, :3] *= -1
    duals = np.zeros((60, 20))
    weights = solve_svms(rows, duals, cost=cost)
    assert (duals >= 0).all()
    assert (duals <= cost).all()
    assert np.allclose(np.einsum("rs,rsd->rd", duals, rows), weights, atol=1e-9)
    losses = np.maximum(0, 1 - np.einsum("rsd,rd->rs", rows, weights)).sum(axis=1)
    half = (weights**2).sum(axis=1) / 2
    assert np.abs(half + cost * losses - (duals.sum(axis=1) - half)).max() < 1e-6


def test_no_record_moves_a_machine_beyond_the_true_sensitivity_and_many_beyond_the_published_one() -> None:
    rng = np.random.default_rng(2)
    points = points_of()
    chosen = np.argsort(rng.random((400, 120)), axis=1)[:, :13]
    rows = points.signed[chosen[:, :12]]
    other = rows.copy()
    # The neighbour holds another record, with whatever label.
    other[:, 0] = points.signed[chosen[:, 12]] * rng.choice([-1, 1], size=(400, 1))
    moved = solve_svms(rows, np.zeros((400, 12)), cost=1.0) - solve_svms(other, np.zeros((400, 12)), cost=1.0)
    assert np.linalg.norm(moved, axis=1).max() <= 2 * points.norm_bound
    assert np.abs(moved).sum(axis=1).max() <= true_scale(1.0, 1.0, points.norm_bound)
    assert np.abs(moved).sum(axis=1).max() > 4 * np.sqrt(2) / 12


def test_the_arc_is_the_version_space() -> None:
    rng = np.random.default_rng(3)
    points = points_of(0.05)
    for _ in range(20):
        labelled = rng.permutation(120)[:6]
        low, high = (float(ends[-1]) for ends in arc_bounds(points.turns, labelled))
        # The two ends of the cone of hypotheses that agree with every label, by scalar products alone.
        across = points.signed[labelled][:, ::-1] * [-1, 1]
        sides = np.concatenate([across, -across])
        ends = sides[(sides @ points.signed[labelled].T >= -1e-9).all(axis=1)]
        leaning = points.X @ ends.T
        undecided = (leaning.min(axis=1) < -1e-9) & (leaning.max(axis=1) > 1e-9)
        crosses = (points.turns < high) | (points.turns - np.pi > low)
        crosses[labelled] = False
        assert np.array_equal(undecided, crosses)


def test_cal_asks_about_informative_records_only_and_random_order_until_both_extremes() -> None:
    points = points_of()
    starts = draw_starts(points.signs, 300, np.random.default_rng(4))
    cal = learn_until_settled(points.turns, starts, probability=1.0, rng=np.random.default_rng(5))
    assert not cal.others.any()
    settled = learn_until_settled(points.turns, starts, probability=1.0, screened=False, rng=np.random.default_rng(5))
    # The later of two given records among 118 in random order comes at 2/3 of the way.
    assert agree(cell(settled.labels[np.arange(300)]), cell([2 / 3 * 119] * 2), slack=3)


def test_the_ranked_learner_asks_the_closest_first_and_never_twice() -> None:
    points = points_of(0.1)
    starts = draw_starts(points.signs, 50, np.random.default_rng(6))
    learned = learn_until_separated(
        points, starts, probability=1.0, cost=1.0, most_queries=40, rng=np.random.default_rng(7)
    )
    for run in range(50):
        asked = learned.labelled[run, : learned.queries[run] + 2]
        assert len(set(asked.tolist())) == len(asked)
        if learned.queries[run]:
            first = solve_svms(points.signed[starts[run]][None], np.zeros((1, 2)), cost=1.0)[0]
            pool = np.delete(np.arange(120), starts[run])
            assert asked[2] == pool[np.abs(points.X[pool] @ first).argmin()]
        assert learned.finished[run] == (points.signed @ learned.weights[run] > 0).all()


def test_coins_stop_at_ranks_with_the_geometric_law() -> None:
    points = points_of(0.1)
    starts = np.tile(draw_starts(points.signs, 1, np.random.default_rng(8)), (4_000, 1))
    learned = learn_until_separated(
        points, starts, probability=0.5, cost=1.0, most_queries=1, rng=np.random.default_rng(9)
    )
    closest = learn_until_separated(
        points, starts[:1], probability=1.0, cost=1.0, most_queries=1, rng=np.random.default_rng(9)
    )
    share = (learned.labelled[:, 2] == closest.labelled[0, 2]).mean()
    # Five standard errors of a fair coin.
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(4_000)
    assert coin(0.1) == pytest.approx(0.525, abs=1e-3)
    assert coin(1.0) == pytest.approx(0.731, abs=1e-3)


@pytest.mark.statistical
def test_a_cell_of_the_published_page_comes_again() -> None:
    """Another seed of the kept settings: four standard errors, false alarms under 1 in 10,000 each."""
    kept = json.loads((RESULTS / "separation.json").read_text())
    experiment = Separation(small=False)
    experiment.settings = kept["settings"]
    again = experiment.way("narrow", "epsilon_p 1", 9_001, 1_000)
    published = kept["result"]["narrow"]["epsilon_p 1"]
    done = np.array(again["finished"])
    assert agree(cell(np.array(again["queries"])[done]), published["queries"])
    place = kept["settings"]["epsilons_m"].index(1.0)
    accuracy = cell(again["accuracy"]["published"][place])
    assert agree(accuracy, published["accuracy"]["published"][place])
    assert not agree(accuracy, published["accuracy"]["true sensitivity"][place])
    assert kept["settings"]["gaps"] == GAPS
