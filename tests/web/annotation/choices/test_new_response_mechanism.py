"""A way to say answers by a mechanism and an event that are declared here alone: paid, drawn, learned from, planned."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from django.db import IntegrityError
from django.urls import reverse

from annotation.choices.randomizers import RandomizerChoice
from annotation.models.configurations import KnownChoice
from learner.models.answers import RandomizedLabel
from learner.pools import answers as answer_selectors
from learner.pools.configuration import answers_event_of
from learner.simulation import plan_setups
from privacy.accounting.cost import Adjacency, outward
from privacy.accounting.event import REGISTRY, event_from_json
from privacy.accounting.events import AnswersEvent, RandomizedAnswersEvent
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomized_response import RandomizedResponse, ResponseMechanism, mechanism_of
from tests import learning
from tests.db.learner.answers.test_randomization import charged, open_randomized, reach
from tests.factories import make_annotators

pytestmark = pytest.mark.django_db(transaction=True)
WHOLE = 2**16


@dataclass(frozen=True, slots=True)
class MixedAnswersEvent(AnswersEvent):
    """Answers of which `true` in 2**16 are said as they are, and the others uniformly among what is kept."""

    true: int
    n_classes: int
    unit: str = "answer"
    randomizations: int = 1
    questions_per_annotator: int = 1
    kind: ClassVar[str] = "mixed_answers"
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset(("null", "replace"))

    @property
    def epsilon(self) -> float:
        return self.epsilon_once

    @property
    def epsilon_once(self) -> float:
        return outward(math.log1p(self.true * self.n_classes / (WHOLE - self.true)))

    def information(self, epsilon):
        return self.true / WHOLE

    def summary(self) -> str:
        return f"answers of which {self.true} in {WHOLE} are said as they are"


@dataclass(frozen=True, slots=True)
class Mixing(ResponseMechanism):
    n_classes: int
    true: int
    charged_as: ClassVar[type[AnswersEvent]] = MixedAnswersEvent

    @classmethod
    def of_event(cls, event, n_classes):
        return cls(n_classes, event.true)

    def kept(self, priors):
        return np.ones(priors.shape, dtype=np.bool_)

    def release(self, classes, kept, *, rng):
        truth = np.asarray(classes, dtype=np.int64)
        plain = rng.integers(WHOLE, size=len(truth)) < self.true
        return np.where(plain, truth, rng.integers(self.n_classes, size=len(truth)))

    def likelihoods(self, said, kept):
        rest = (1 - self.true / WHOLE) / self.n_classes
        values = np.full(kept.shape, rest)
        values[np.arange(len(said)), said] += self.true / WHOLE
        return values


@dataclass(frozen=True)
class Mixed(RandomizerChoice):
    name: ClassVar[str] = "mixed"
    label: ClassVar[str] = "answers mixed with chance"
    sound: ClassVar[Sound] = Sound(oracles=("crowd",), arrivals=("pool",), data_kinds=("text",))
    mechanism: ClassVar[type[ResponseMechanism]] = Mixing

    said_as_they_are: int = parameter(
        60_000, at_least=1, at_most=WHOLE - 1, label="Said as they are", help="Of 65,536.", rule="Not {got}."
    )

    def event(self, *, n_classes, **circumstances):
        return MixedAnswersEvent(self.said_as_they_are, n_classes)


DECLARED = Mixed


@pytest.fixture
def crowd(declared, manager):
    return open_randomized(manager, label_randomizer="mixed", said_as_they_are=60_000, answers_epsilon=None)


def test_it_is_charged_once_drawn_by_its_own_mechanism_and_learned_from(crowd, monkeypatch, client):
    def not_drawn(*given, **more):
        raise AssertionError("responses of another mechanism")

    monkeypatch.setattr(RandomizedResponse, "release", not_drawn)
    learning.fill_crowd(crowd)
    make_annotators(crowd, 3)
    learning.work_off(crowd)
    release = reach(crowd, 1)
    event = MixedAnswersEvent(60_000, 2)
    (reservation,) = charged(crowd)
    assert (reservation.mechanism, event_from_json(reservation.event)) == ("mixed_answers", event)
    assert reservation.epsilon_nano == pytest.approx(event.cost().epsilon * 1e9, abs=1)
    assert event.cost().epsilon == pytest.approx(math.log((60_000 + 5_536 / 2) / (5_536 / 2)))
    assert release.event == event.to_json()
    assert RandomizedLabel.objects.count() == release.labels_used > 0
    found = answer_selectors.responses_of(crowd).likelihoods
    assert set(np.round(found.max(axis=1), 9)) == {round(60_000 / WHOLE + 5_536 / WHOLE / 2, 9)}
    assert client.get(reverse("learner:plan", args=[crowd.slug])).status_code == 200
    assert plan_setups.setup_of(crowd, 1000).answers == event.to_json()


def test_the_database_takes_no_response_under_an_event_that_nothing_declares(crowd):
    learning.fill_crowd(crowd)
    make_annotators(crowd, 3)
    learning.work_off(crowd)
    reach(crowd, 1)
    said = RandomizedLabel.objects.first()
    again = {name: getattr(said, name) for name in ("project", "query", "number", "answers", "said", "kept", "entry")}
    with pytest.raises(IntegrityError, match="the next of that question"):
        RandomizedLabel.objects.create(**again)
    with pytest.raises(IntegrityError, match="nobody has paid for this response"):
        RandomizedLabel.objects.create(**again | {"number": 2})
    KnownChoice.objects.filter(name="mixed").update(facts={"open_answers": False, "charged_as": "something_else"})
    with pytest.raises(IntegrityError, match="nobody has paid for this response"):
        RandomizedLabel.objects.create(**again)


def test_an_event_that_nothing_draws_by_is_never_charged(crowd, monkeypatch):
    class Undrawn(MixedAnswersEvent):
        __slots__ = ()
        kind = "undrawn_answers"

    settings = SimpleNamespace(settings=crowd.settings, classes=crowd.classes)
    monkeypatch.setattr(Mixed, "event", lambda self, **circumstances: Undrawn(60_000, 2))
    with pytest.raises(TypeError, match="no mechanism draws the responses of undrawn_answers"):
        answers_event_of(settings)
    del REGISTRY["undrawn_answers"]
    monkeypatch.setattr(Mixed, "event", lambda self, **circumstances: RandomizedAnswersEvent(2.0, 2))
    with pytest.raises(TypeError, match="mixed is charged as randomized_answers, and draws by Mixing"):
        answers_event_of(settings)


def test_one_event_has_one_mechanism():
    with pytest.raises(TypeError, match="mixed_answers already have the mechanism Mixing"):
        type("Louder", (Mixing,), {"__slots__": ()})
    assert isinstance(mechanism_of(MixedAnswersEvent(60_000, 2)), Mixing)
    assert mechanism_of(RandomizedAnswersEvent(2.0, 5), 2).n_classes == 2
