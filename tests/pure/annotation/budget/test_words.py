import pytest
from django.utils import translation

from annotation.budget.words import how_words, mechanism_words
from privacy.accounting import events as ev
from privacy.accounting.event import REGISTRY, Event, EventWords

# Tests may have made kinds of their own.
OURS = [event for event in REGISTRY.values() if event.__module__.startswith("privacy.")]


def without_words(events: list[type[Event]]) -> list[str]:
    """Return the kinds of events that declare no words of their own; those of a parent would say what it does."""
    return [event.kind for event in events if not isinstance(vars(event).get("words"), EventWords)]


def test_every_event_brings_its_words():
    assert len(OURS) > 30
    assert without_words(OURS) == []


def test_an_event_that_brings_none_is_found_and_told_by_its_summary():
    class Unworded(ev.RandomChoiceEvent):
        kind = "unworded_test_event"

    try:
        assert without_words([*OURS, Unworded]) == ["unworded_test_event"]
        Unworded.words = None
        assert how_words(Unworded(2).to_json()) == "2 records chosen at random"
        assert mechanism_words("unworded_test_event") == "unworded test event"
    finally:
        del REGISTRY["unworded_test_event"]


@pytest.mark.parametrize(
    ("event", "english", "german"),
    [
        (ev.RandomChoiceEvent(1), "1 record at random", "1 Datensatz durch Zufall"),
        (ev.RandomChoiceEvent(1234), "1,234 records at random", "1.234 Datensätze durch Zufall"),
        (
            ev.BernoulliScreenEvent(0.6, 0.2),
            "one coin per record, rate 0.6 or 0.2",
            "eine Münze je Datensatz, Rate 0,6 oder 0,2",
        ),
        (
            ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5),
            "texts with at least 60 in a secret 0.2 sample",
            "Texte mit mindestens 60 in einer geheimen Stichprobe der Rate 0,2",
        ),
        (
            ev.PeopleEvent(ev.RandomChoiceEvent(1), "contributor", 1, "project:a:pool", 2),
            "for a person with at most 1 record; 1 record at random",
            "für eine Person mit höchstens 1 Datensatz; 1 Datensatz durch Zufall",
        ),
    ],
)
def test_a_mechanism_is_told_with_its_numbers(event, english, german):
    with translation.override("en"):
        assert how_words(event.to_json()) == english
    with translation.override("de"):
        assert how_words(event.to_json()) == german
