import hashlib
from dataclasses import replace

import pytest

from dpal.features.sentences import PACKAGES
from learner.features.encoder import ENCODER
from learner.models.planning import PlanSimulation
from learner.releases.no_privacy import estimate_said
from learner.simulation.forecast import expected_course
from learner.simulation.plan_setups import setup_of
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def point(labels, mean):
    return {"labels": labels, "mean": mean, "low": mean, "high": mean, "macro_f1": mean - 0.1}


def simulate(setup, **result):
    name = hashlib.sha256(str((setup, result)).encode()).hexdigest()
    PlanSimulation.objects.create(fingerprint=name, setup=setup.as_json(), epsilon=1.0, result=result)


def test_the_point_of_about_as_many_labels_is_taken_from_a_plan_of_these_settings_alone():
    project = learning.open_trusted(make_user())
    assert expected_course(project).at(100) is None
    mine = setup_of(project, 700)
    made_up = {"made_up": [point(50, 0.7), point(100, 0.8)]}
    simulate(mine, curves=made_up, plain={"made_up": [point(50, 0.9), point(100, 0.95)]})
    # Other settings say nothing here, however new they are.
    simulate(replace(mine, n_classes=7), curves=made_up, plain={"made_up": [point(100, 0.1)] * 2})
    found = expected_course(project).at(110)
    assert (found.data, found.labels, found.accuracy, found.with_privacy) == ("made_up", 100, 0.95, 0.8)
    assert expected_course(project).at(60).labels == 50
    # Far from what was simulated nothing is claimed.
    assert expected_course(project).at(201) is None
    assert expected_course(project).at(0) is None
    said = estimate_said(found, may_plan=True)
    assert "Simulated on" in said
    assert "95.0%" in said
    assert "80.0%" in said


def test_where_none_is_at_hand_it_says_where_to_and_not_who_failed_to():
    """Somebody may have simulated these settings, on this site before it lost the encoder they need."""
    said = estimate_said(None, may_plan=True)
    assert "No simulation for these settings" in said
    assert "plan page" in said
    assert "obody" not in said


def test_who_cannot_open_the_plan_is_not_sent_there():
    said = estimate_said(None, may_plan=False)
    assert "No simulation for these settings" in said
    assert "plan page" not in said


def test_where_the_encoder_is_gone_nothing_is_claimed(monkeypatch):
    """And so whoever has the encoder elsewhere can still read the release."""
    project = learning.open_trusted(make_user(), features="encoder")
    made_up = {"made_up": [point(100, 0.8)]}
    simulate(setup_of(project, 700), curves=made_up, plain=made_up)
    assert expected_course(project).at(100) is not None
    monkeypatch.setitem(PACKAGES, ENCODER, "not_installed")
    assert expected_course(project).at(100) is None
