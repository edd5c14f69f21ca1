import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score

from learner.releases.evaluation import GROUPS, set_measures, sets_right


def outcomes(n, n_classes, *, seed):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, n_classes)) < np.linspace(0.1, 0.6, n_classes)
    shares = np.clip(0.5 * truth + rng.random((n, n_classes)) * 0.6 - 0.05, 0, 1)
    return shares > 0.5, shares, truth


def test_scores_are_scikit_learns():
    members, shares, truth = outcomes(700, 6, seed=1)
    found = set_measures(members, shares, truth)
    assert found["micro_f1"]["value"] == pytest.approx(f1_score(truth, members, average="micro"))
    assert found["macro_f1"]["value"] == pytest.approx(f1_score(truth, members, average="macro"))
    assert [each["value"] for each in found["recall"]] == pytest.approx(recall_score(truth, members, average=None))
    assert [each["value"] for each in found["precision"]] == pytest.approx(
        precision_score(truth, members, average=None)
    )
    assert sets_right(members, truth) == int((members == truth).all(axis=1).sum())
    assert found["confusion"] == []


def test_the_constant_is_the_most_frequent_set():
    truth = np.array([[True, True]] * 5 + [[True, False]] * 3 + [[False, False]] * 2)
    found = set_measures(~truth, np.full(truth.shape, 0.5), truth)["constant"]
    always = np.ones_like(truth)
    assert found == {
        "classes": [0, 1],
        "correct": 5,
        "accuracy": 0.5,
        "micro_f1": pytest.approx(f1_score(truth, always, average="micro")),
        "macro_f1": pytest.approx(f1_score(truth, always, average="macro")),
    }
    nobody = np.zeros((4, 2), dtype=bool)
    assert set_measures(nobody, nobody.astype(float), nobody)["constant"]["micro_f1"] == 0.0


def test_calibration_is_of_every_class_by_itself():
    truth = np.repeat(np.array([[True, False]]), 50, axis=0)
    found = set_measures(truth, np.tile([0.75, 0.25], (50, 1)), truth)
    assert found["calibration_error"]["value"] == pytest.approx(0.25)
    assert [row["value"] for row in found["reliability"]] == [0.0, 1.0]


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("n", [120, 3 * GROUPS + 7])
def test_the_interval_of_micro_f1_covers(n):
    """Seeded; 95 % intervals that cover fewer than 85 of 100 draws would be refused, at a chance of about 1e-4."""
    every = outcomes(40_000, 4, seed=9)
    truth_value = f1_score(every[2], every[0], average="micro")
    covered = 0
    for seed in range(100):
        found = set_measures(*outcomes(n, 4, seed=seed + 100))["micro_f1"]
        assert found["low"] <= found["value"] <= found["high"]
        covered += found["low"] <= truth_value <= found["high"]
    assert covered >= 85
