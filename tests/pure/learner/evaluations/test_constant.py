import numpy as np

from learner.releases.cards.accuracy import accuracy_section
from learner.releases.evaluation import constant_outcome, count_outcomes, macro_f1, measures


def test_the_likeliest_class_of_the_examples_is_the_constant():
    place, correct, f1 = constant_outcome(np.array([[1, 4], [2, 13]]))
    assert (place, correct) == (1, 15)
    # One class of two with precision 3/4 and recall 1, the other never named.
    assert np.isclose(f1, (2 * 15 / (15 + 20)) / 2)


def test_measures_hold_the_constant_of_the_same_examples():
    truth = np.array([0, 0, 0, 1, 2])
    leaders = np.array([0, 1, 2, 1, 2])
    found = measures(count_outcomes(np.full((5, 3), 1 / 3), leaders, truth))
    assert found["constant"]["class"] == 0
    assert (found["constant"]["correct"], found["constant"]["accuracy"]) == (3, 0.6)
    assert found["constant"]["macro_f1"] == float(macro_f1(np.array([[3, 0, 0], [1, 0, 0], [1, 0, 0]])))


def test_the_card_says_it_where_a_model_is_worth_nothing():
    metric = {
        "dataset": "public",
        "examples": 100,
        "accuracy": 0.6,
        "interval": (0.5, 0.7),
        "constant": 0.6,
        "version_0": None,
        "macro_f1": 0.4,
        "calibration_error": 0.1,
    }
    assert "no better than always giving" in accuracy_section([metric])[-1]
    assert "no better" not in " ".join(accuracy_section([metric | {"constant": 0.59}]))
    point = {"labels": 120, "with_privacy": 0.71, "low": 0.66, "high": 0.75, "no_privacy": 0.83}
    expected = {"data": "the public file", "constant": 0.6, "version_0": None, "points": [point]}
    estimated = accuracy_section([metric], expected=expected)
    assert "Expected, simulated on the public file; always one answer 60.0%:" in estimated
    assert estimated[-1] == "| 120 | 71.0% (66.0% to 75.0%) | 83.0% |"
    described = metric | {"constant": 0.5, "version_0": 0.6}
    assert "no better than the words about the classes" in accuracy_section([described])[-1]
    assert "no better" not in " ".join(accuracy_section([described | {"version_0": 0.59}]))
