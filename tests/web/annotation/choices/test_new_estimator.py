"""An estimator that is declared here, and nowhere else: of pools and of streams, chosen, priced, trained and read."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.choices.catalogue import CATALOGUE
from annotation.choices.label_types.learning import LearnsLabels, chosen_estimator
from annotation.choices.stream_rules import batch_stream_epsilon
from annotation.data.services.streams import post_records
from learner.estimators.choice import Shape
from learner.estimators.sums import PrivateSums
from learner.models import Stream
from learner.pools.configuration import featurizer_of, learner_of, stream_event
from learner.releases.artifacts.settings import configuration_of
from learner.rounds.services import streams
from learner.simulation import plan_setups
from privacy.choices import Kind
from tests import learning, streaming
from tests.declaring import declaring
from tests.examples.estimator import NoisyMeans, Unhurried, UnhurriedStream
from tests.factories import make_user, write_settings
from tests.pure.learner.estimators import test_release_battery

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Unproved(UnhurriedStream):
    """A learner whose event no stream has a proof for."""

    name: ClassVar[str] = "unproved"
    label: ClassVar[str] = "means at a price of something else"

    def estimator(self, shape):
        learner = super().estimator(shape)
        event = PrivateSums(1.0, delta=1e-6, classes=shape.classes).event_for(3)
        learner.event_for = lambda n_features: event
        return learner


@pytest.fixture
def declared() -> Iterator[None]:
    with declaring(Unhurried):
        yield


@pytest.fixture
def stream(declared, manager):
    return streaming.open_stream(manager, estimator="unhurried", pace=3.0, window_length=10)


@pytest.fixture
def pool(declared, manager):
    return learning.open_trusted(manager, selection="random", estimator="unhurried", pace=3.0)


def test_a_pool_trains_with_it_and_keeps_its_parameter_with_the_model(pool, client):
    assert plan_setups.setup_of(pool, 300).declared["pace"] == 3.0
    assert plan_setups.purchase_of(pool, 300).training == pytest.approx(2.0, rel=1e-6)
    assert client.get(reverse("learner:plan", args=[pool.slug])).status_code == 200
    learning.fill_trusted(pool)
    release = learning.run_to_release(pool, make_user(), version=1)
    assert (release.estimator, release.configuration["pace"]) == ("unhurried", "3.0")
    assert configuration_of(pool)["training_epsilon"] == "2.0"


def test_a_stream_is_priced_planned_and_learned_by_it(stream, client, manager):
    whole = batch_stream_epsilon(stream.settings)
    assert stream_event(stream).cost().epsilon == pytest.approx(whole, rel=1e-6)
    assert plan_setups.purchase_of(stream, 300).whole == whole
    assert client.get(reverse("learner:plan", args=[stream.slug])).status_code == 200
    learner = learner_of(stream, featurizer_of(stream))
    assert isinstance(learner, NoisyMeans)
    assert learner.pace == 3.0
    release = streaming.run_to_release(stream, manager, version=1)
    assert release.estimator == "unhurried"


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


def test_a_learner_that_is_none_of_those_that_ship_learns_from_a_stream(manager):
    with declaring(UnhurriedStream):
        stream = streaming.open_stream(manager, estimator="noisy_means", window_length=10, training_epsilon=1.3)
        assert stream_event(stream).cost().epsilon == pytest.approx(batch_stream_epsilon(stream.settings), rel=1e-6)
        release = streaming.run_to_release(stream, manager, version=1)
        assert release.estimator == "noisy_means"
        assert Stream.objects.get(project=stream).learner_state["updates"] >= 1


def test_it_starts_a_stream_of_texts_from_words_as_it_says(manager):
    with declaring(UnhurriedStream):
        shape = {"data_kind": "text", "columns": [], "features": "planned", "training_epsilon": 1.3}
        lines = ("honest: see you at noon", "fraud: claim your prize")
        stream = streaming.open_stream(manager, estimator="noisy_means", class_descriptions=lines, **shape)
        featurizer = featurizer_of(stream)
        learner = streams.current_learner(stream, Stream(project=stream), featurizer)
        said = featurizer.transform(["see you at noon", "claim your prize"])
        assert learner.predict(said).tolist() == [0, 1]
        assert learner.updates_ == 0


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


def test_a_learner_that_nobody_could_make_is_not_taken():
    @dataclass(frozen=True)
    class Wordless(LearnsLabels):
        """What annotation could offer, and the learner would not know how to make."""

        name: ClassVar[str] = "wordless"
        label: ClassVar[str] = "nothing that learns"

        def event(self, **circumstances):
            return None

    assert CATALOGUE.find(Kind.ESTIMATOR, "wordless") is None
    with pytest.raises(TypeError, match="estimator wordless must be a EstimatorChoice"):
        CATALOGUE.register(Wordless)
    assert CATALOGUE.find(Kind.ESTIMATOR, "wordless") is None
