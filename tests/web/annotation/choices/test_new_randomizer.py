"""A way to randomise answers that is declared here, and nowhere else: chosen, asked for, planned, read, and charged."""

from types import SimpleNamespace

import pytest
from django.db import IntegrityError

from annotation.projects.services.known_choices import note_choice
from learner.models.answers import RandomizedLabel
from learner.pools.configuration import answers_event_of
from privacy.accounting.event import event_from_json
from privacy.accounting.events import RandomizedAnswersEvent
from tests import learning
from tests.db.learner.answers.test_randomization import charged, open_randomized, reach
from tests.examples.randomizer import Hushed
from tests.factories import make_annotators, write_settings

pytestmark = pytest.mark.django_db(transaction=True)
DECLARED = Hushed


@pytest.fixture
def crowd(declared, manager):
    """A crowd project whose answers are said so; the parameters of another randomiser are none of its own."""
    return open_randomized(manager, label_randomizer="hushed", loudness=0.5, answers_epsilon=None)


def test_its_event_is_what_a_release_is_charged_and_drawn_by(crowd):
    learning.fill_crowd(crowd)
    make_annotators(crowd, 3)
    learning.work_off(crowd)
    release = reach(crowd, 1)
    (reservation,) = charged(crowd)
    event = RandomizedAnswersEvent(2.0, 2, "uniform")
    assert event_from_json(reservation.event) == event
    assert release.event == event.to_json()
    assert RandomizedLabel.objects.count() == release.labels_used > 0


def test_the_database_holds_the_account_to_what_it_declares(crowd, monkeypatch):
    """What is declared open has no account of answers, and what is not has one, whichever randomiser it is."""
    write_settings(crowd, loudness=0.3)
    monkeypatch.setattr(Hushed, "mechanism", None)
    note_choice(Hushed)
    with pytest.raises(IntegrityError, match="answers have an account of their declared unit"):
        write_settings(crowd, loudness=0.4)


def test_what_draws_nothing_and_does_not_say_so_is_never_learned_from(crowd, monkeypatch):
    monkeypatch.setattr(Hushed, "event", lambda self, **circumstances: None)
    with pytest.raises(TypeError, match="hushed draws no responses"):
        answers_event_of(crowd)


@pytest.mark.parametrize(
    ("paid", "cap"), [(("answer", 1, 1), 6), (("annotator", 1, 5), 6), (("annotator", 1, 5), None)]
)
def test_a_unit_that_its_event_does_not_pay_for_is_never_learned_from(crowd, monkeypatch, paid, cap):
    """An account said to hide all answers of a person, at the price of one of them, or of five of six."""
    event = RandomizedAnswersEvent(2.0, 2, "uniform", *paid)
    monkeypatch.setattr(Hushed, "event", lambda self, **circumstances: event)
    settings = {**crowd.settings, "answers_unit": "annotator", "answers_cap": cap}
    with pytest.raises(TypeError, match="hushed does not pay for all that its account is said to hide"):
        answers_event_of(SimpleNamespace(settings=settings, classes=crowd.classes))


def test_a_unit_that_its_event_pays_for_is_learned_from(crowd, monkeypatch):
    event = RandomizedAnswersEvent(2.0, 2, "uniform", "annotator", 1, 5)
    monkeypatch.setattr(Hushed, "event", lambda self, **circumstances: event)
    settings = {**crowd.settings, "answers_unit": "annotator", "answers_cap": 5}
    assert answers_event_of(SimpleNamespace(settings=settings, classes=crowd.classes)) == event
