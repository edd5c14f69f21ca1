import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from learner.papers.crowd_learning import Crowd
from learner.papers.experiment import ClaimVerdict, Data, Json
from learner.papers.feyisetan2019_gate import EpsilonDelta, epsilon_at, full_count_delta
from learner.papers.feyisetan2019_grid import GateGrid
from learner.papers.feyisetan2019_log import LEARNING, SMALL_LOG, simulated_log
from learner.papers.query_log import QueryLog
from privacy.accounting.gate import gate_delta

RESULTS = Path(__file__).parents[4] / "docs" / "results" / "feyisetan2019"
SETTINGS = SMALL_LOG | LEARNING | {"texts": "made up"}


@pytest.fixture(scope="module")
def log() -> QueryLog:
    return simulated_log(SETTINGS, Data(), 1)


def test_the_log_has_the_counts_it_says_and_people_who_repeat_themselves(log: QueryLog) -> None:
    assert np.array_equal(np.bincount(log.said, minlength=len(log.counts)), log.counts)
    assert len(log.people) == len(log.said)
    for place in log.habits:
        owners = log.people[log.said == place]
        assert len(owners) >= 30
        assert len(set(owners.tolist())) == 1
    seen = Counter(log.pool.texts)
    assert max(seen.values()) == 1
    assert not set(log.test.texts + log.golden.texts) & set(seen)


def test_what_passes_is_frequent_and_what_is_asked_is_what_passed(log: QueryLog) -> None:
    crowd = Crowd(log, SETTINGS, np.random.default_rng(4))
    passed = crowd.passed(20, 0.5, bytes(32))
    assert len(passed) > 20
    assert log.counts[passed].min() >= 20
    assert len(passed) < (log.counts >= 20).sum()
    for uncertain in (True, False):
        accuracies = crowd.ranked(passed, [10, len(passed)], uncertain=uncertain, seed=5)
        assert accuracies[1] == pytest.approx(crowd.accuracy(passed), abs=1e-9)


def test_crowd_answers_are_wrong_as_often_as_said(log: QueryLog) -> None:
    """Five standard errors at about 1,000 texts."""
    crowd = Crowd(log, SETTINGS, np.random.default_rng(6))
    wrong = (crowd.answers != log.pool.positive).mean()
    assert abs(wrong - 0.05) < 5 * math.sqrt(0.05 * 0.95 / len(log.counts))


def test_dropout_gives_confidence_and_the_entropy_that_belongs_to_it(log: QueryLog) -> None:
    crowd = Crowd(log, SETTINGS, np.random.default_rng(7))
    confidence, entropy = crowd.dropout(5, np.random.default_rng(8))
    assert confidence.min() >= 0.5
    assert np.allclose(entropy, -confidence * np.log(confidence) - (1 - confidence) * np.log(1 - confidence))


@pytest.mark.parametrize(("k", "rate"), [(20, 0.1), (500, 0.6)])
def test_epsilon_is_the_smallest_that_reaches_delta(k: int, rate: float) -> None:
    epsilon = epsilon_at(k, rate, 1e-6)
    assert float(gate_delta(k, rate, epsilon)) <= 1e-6 < float(gate_delta(k, rate, epsilon - 0.003))


def test_counting_on_the_full_data_shows_a_text_of_k_records_with_the_rate() -> None:
    """Five standard errors; the gate's own delta is far below."""
    share = full_count_delta(0.3, 20, 20_000, np.random.default_rng(9))
    assert abs(share - 0.3) < 5 * math.sqrt(0.21 / 20_000)
    assert share > 100 * float(gate_delta(20, 0.3, 1.0))


def test_cells_of_the_published_table_come_again() -> None:
    kept = json.loads((RESULTS / "epsilon_delta.json").read_text())
    experiment = EpsilonDelta(small=False)
    experiment.settings = kept["settings"] | {"rates": [0.1], "ks": kept["settings"]["ks"][:2]}
    again = experiment.run(kept["seeds"][0], Data())
    for method in ("li2012", "exact"):
        expected = np.array(kept["result"]["delta"][method][0][:2])
        assert np.allclose(np.array(again["delta"][method][0]), expected, rtol=1e-9)
    # Other draws of a share of 20,000 runs: five standard errors.
    share = experiment.run(9_001, Data())["planted"][0]
    assert abs(share - kept["result"]["planted"][0]) < 5 * math.sqrt(2 * 0.1 * 0.9 / 20_000)


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
