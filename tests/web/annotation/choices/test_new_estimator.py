"""An estimator that is declared here, and nowhere else: of pools and of streams, chosen, priced, trained and read."""

import inspect
from dataclasses import dataclass
from typing import ClassVar

import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.choices.label_types.learning import chosen_estimator
from annotation.data.services.streams import post_records
from learner.estimators.choice import Shape
from learner.estimators.sums import PrivateSums
from learner.pools.configuration import stream_event
from learner.releases.artifacts.settings import configuration_of
from learner.simulation import plan_setups
from learner.simulation.selectors import plan_forecast
from tests import learning, streaming
from tests.declaring import declaring
from tests.examples.estimator import Unhurried, UnhurriedStream
from tests.factories import make_user, write_settings
from tests.pure.learner.estimators import test_release_battery

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = Unhurried


@dataclass(frozen=True)
class Unproved(UnhurriedStream):
    name: ClassVar[str] = "unproved"
    label: ClassVar[str] = "means at a price of something else"

    def estimator(self, shape):
        learner = super().estimator(shape)
        event = PrivateSums(1.0, delta=1e-6, classes=shape.classes).event_for(3)
        learner.event_for = lambda n_features: event
        return learner


@pytest.fixture
def stream(declared, manager):
    return streaming.open_stream(manager, estimator="unhurried", pace=3.0, window_length=10)


@pytest.fixture
def pool(declared, manager):
    return learning.open_trusted(manager, selection="random", estimator="unhurried", pace=3.0)


def test_a_pool_trains_with_it_and_keeps_its_parameter_with_the_model(pool, client):
    assert plan_setups.setup_of(pool, 300).declared["pace"] == 3.0
    assert plan_forecast(pool, records=300).next_training.cost().epsilon == pytest.approx(2.0, rel=1e-6)
    assert client.get(reverse("learner:plan", args=[pool.slug])).status_code == 200
    learning.fill_trusted(pool)
    release = learning.run_to_release(pool, make_user(), version=1)
    assert (release.estimator, release.configuration["pace"]) == ("unhurried", "3.0")
    assert configuration_of(pool)["training_epsilon"] == "2.0"


def test_it_learns_classes_and_the_database_takes_it_for_nothing_else(stream):
    assert chosen_estimator(stream.settings) is Unhurried
    with pytest.raises(IntegrityError, match="annotation_project_confirm_is_learned"):
        write_settings(stream, question_kind="confirm")
    with pytest.raises(IntegrityError, match=r"no choice declares this value of training\.pace"):
        write_settings(stream, pace=11.0)


@pytest.mark.parametrize("check", test_release_battery.BATTERY, ids=lambda check: check.__name__)
def test_it_passes_the_battery_of_all_estimators(check):
    def make(classes=None, random_state=None):
        shape = Shape(classes=classes, norm_bound=1.0, intercept_scaling=1.0)
        return Unhurried(training_epsilon=2.0).estimator(shape).set_params(random_state=random_state)

    values = {"make": make, "n_classes": 2}
    check(**{name: values[name] for name in inspect.signature(check).parameters})


def test_a_learner_without_a_proof_in_a_stream_is_never_charged_as_if_it_had_one(manager):
    with declaring(Unproved):
        # Its update alone would leave out what the screen tells.
        stream = streaming.open_stream(manager, estimator="unproved", window_length=10, training_epsilon=1.3)
        with pytest.raises(ValueError, match="is no update of a stream"):
            stream_event(stream)
        post_records(project=stream, records=streaming.rows(20))
        with pytest.raises(ValueError, match="is no update of a stream"):
            streaming.work_off(stream)
        assert not learning.entries(stream, "reserve")
