import json

import numpy as np
import pytest

from learner.simulation.outcome import MeanAccuracy, Outcome, OutcomePoint, SimulatedAccount


def test_json_has_exactly_the_documented_shape():
    accuracy = MeanAccuracy(0.75, 0.01, 0.5)
    outcome = Outcome(
        (SimulatedAccount("pool", "record", 2.0, 1e-6),),
        (OutcomePoint(60, accuracy, accuracy, accuracy, accuracy, accuracy),),
    )
    body = json.loads(json.dumps(outcome.to_json()))
    # What stands beside accounts and points is documented as such; a further key would not be.
    assert set(body) == {"accounts", "points", "notes", "simulation"}
    assert body["notes"] == []
    assert body["accounts"] == [{"scope": "pool", "unit": "record", "epsilon": 2.0, "delta": 1e-6}]
    (point,) = body["points"]
    assert set(point) == {"labels", "project", "random", "version_0", "no_privacy", "constant"}
    assert point["labels"] == 60
    for name in ("project", "random", "version_0", "no_privacy", "constant"):
        assert point[name] == {"accuracy": 0.75, "accuracy_se": 0.01, "macro_f1": 0.5}
    assert "no guarantee" in body["simulation"]


def test_a_crowd_adds_its_gate_and_several_releases_what_each_of_them_reached():
    accuracy = MeanAccuracy(0.75, 0.01, 0.5)
    point = OutcomePoint(60, accuracy, accuracy, accuracy, accuracy, accuracy, releases=(accuracy, accuracy))
    body = Outcome((), (point,), ("a note",), {"texts": 9, "passed": 3, "assumed": False}).to_json()
    assert set(body) == {"accounts", "points", "notes", "simulation", "gate"}
    assert set(body["gate"]) == {"texts", "passed", "assumed"}
    assert body["notes"] == ["a note"]
    assert set(body["points"][0]) == {"labels", "project", "random", "version_0", "no_privacy", "constant", "releases"}
    assert [set(one) for one in body["points"][0]["releases"]] == [{"accuracy", "accuracy_se", "macro_f1"}] * 2


def test_accuracy_over_seeds():
    truth = np.array([0, 0, 0, 1])
    found = MeanAccuracy.over_seeds([[0, 0, 0, 0], [0, 0, 0, 1]], truth)
    assert found.accuracy == pytest.approx(0.875)
    # Two shares a quarter apart have a standard deviation of .25 / sqrt 2, their mean one of half the distance.
    assert found.accuracy_se == pytest.approx(0.125)
    assert found.macro_f1 == pytest.approx(((6 / 7) / 2 + 1) / 2)
    assert MeanAccuracy.over_seeds([truth], truth) == MeanAccuracy(1.0, 0.0, 1.0)
