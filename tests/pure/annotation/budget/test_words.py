import re
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
from django.utils import translation

from annotation.budget.words import how_words, mechanism_words
from annotation.wording import localized
from privacy.accounting import events as ev
from privacy.accounting.event import REGISTRY, Event, EventWords
from privacy.accounting.events import SecretSeriesEvent, SumsEvent
from tests.pure.privacy.accounting.test_events import EXAMPLES

PLURALS = {
    "en": "answers batches blocks cells classes columns looks models questions records rounds rows steps texts uploads"
    " weights",
    "de": "Antworten Blicke Blöcke Blöcken Datensätze Datensätzen Fragen Gewichte Gradientenschritte Klassen Modelle"
    " Modellen Runden Schritte Schritten Spalten Stapeln Texte Texten Uploads Zeilen Zellen",
}
# What replacing a number does not reach: as many blocks as there are rates.
MORE = [
    SecretSeriesEvent((0.1,), (3.0,), (0.0,)),
    ev.GateWindowEvent(ev.ThresholdGateEvent(1.0, 1e-6), 1, 3, 5),
    ev.RunningSumsEvent(SumsEvent(1, 1, 1.05, 40.0, 9.0, delta=1e-6), 1, (), ()),
    ev.TopCEvent(1, 1, 1.0, "opened"),
    ev.TopCEvent(1, 1, 1.0, "continued"),
    ev.RandomizedAnswersEvent(1.0, 2, "uniform", "annotator"),
]


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


@pytest.mark.parametrize("event", OURS, ids=lambda event: event.kind)
def test_words_name_parameters_of_their_event(event):
    names = {field.name for field in fields(event)}
    told = [event.words.how] if isinstance(event.words.how, str) else event.words.how
    assert {name for each in told for name in re.findall(r"%\((\w+)\)s", each)} <= names
    assert (event.words.counted in names) == (len(told) == 2)


def counts_of(event: Event) -> list[str]:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return [name for name, value in values.items() if isinstance(value, int) and not isinstance(value, bool)]


def with_ones(event: Event) -> Iterator[Event]:
    counts = counts_of(event)
    changes = [{name: 1} for name in counts] + [dict.fromkeys(counts, 1)]
    for field in fields(event):
        inner = getattr(event, field.name)
        if isinstance(inner, Event):
            changes += [{field.name: each} for each in with_ones(inner)]
    for change in changes:
        try:
            yield replace(event, **change)
        except ValueError:
            continue  # not every number may be one


ONES = [one for event in EXAMPLES for one in with_ones(event)] + MORE


def plurals_of_one(said: str, language: str) -> list[str]:
    words = "|".join(PLURALS[language].split())
    return re.findall(rf"(?<![\d.,])1 (?:[^\W\d]+ ){{0,2}}(?:{words})\b", said)


def told(event: Event) -> Iterator[str]:
    yield localized(event.summary())
    yield how_words(event.to_json())


@pytest.mark.parametrize("language", ["en", "de"])
def test_one_of_a_thing_is_told_as_one(language):
    with translation.override(language):
        wrong = [said for event in ONES for said in told(event) if plurals_of_one(said, language)]
    assert wrong == []


@pytest.mark.parametrize(
    ("event", "english", "german"),
    [
        (ev.RandomChoiceEvent(1), "1 record at random", "1 Datensatz durch Zufall"),
        (ev.RandomChoiceEvent(1234), "1,234 records at random", "1.234 Datensätze durch Zufall"),
        (
            ev.ExposureCappedScreenEvent(0.6, 0.2, 1),
            "coins of rate 0.6 or 0.2, at most 1 look at each record",
            "Münzen der Rate 0,6 oder 0,2, höchstens 1 Blick auf jeden Datensatz",
        ),
        (
            ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5),
            "texts held by at least 60 in a secret sample of rate 0.2",
            "Texte, die in einer geheimen Stichprobe der Rate 0,2 mindestens 60-mal vorkommen",
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


@pytest.mark.parametrize(
    ("event", "german"),
    [
        (
            ev.KAnonymityGateEvent(60, 0.2, 0.1, "contributor", 5),
            "k-Anonymitäts-Schleuse mit k = 60 auf einer Stichprobe von 0,2, je beitragende Person",
        ),
        (
            ev.ThresholdGateEvent(1.0, 1e-6),
            "Schleuse mit Schwelle 14,12 und Laplace-Rauschen der Skala 1, je Datensatz",
        ),
        (
            ev.SumsEvent(1, 77, 1.05, 12.0, 2.5),
            "zweite Momente von 1 Spalte und Summen für 77 Klassen mit Gaußschem Rauschen von 12 und 2,5",
        ),
    ],
)
def test_a_summary_is_german_throughout(event, german):
    with translation.override("de"):
        assert localized(event.summary()) == german


def test_every_count_that_can_be_one_is_told_as_one():
    never = set()
    for event in EXAMPLES:
        ones = {name for one in ONES if one.kind == event.kind for name in counts_of(one) if getattr(one, name) == 1}
        never |= {(event.kind, name) for name in counts_of(event) if name not in ones}
    # Answers have two classes at least, a weight is larger than its unit, and a coin has eight bits.
    assert never == {
        ("randomized_answers", "n_classes"),
        ("randomized_answers", "odds"),
        ("exponential_screen", "probability_bits"),
    }


@pytest.mark.parametrize(
    ("said", "language"),
    [
        ("1 records at random", "en"),
        ("coins of rate 1 or 0.2, at most 1 looks at each record", "en"),
        ("1 noisy gradient steps over all rows", "en"),
        ("1 Datensätze durch Zufall", "de"),
        ("1 zufällig ausgewählte Datensätze", "de"),
        ("für eine Person mit höchstens 1 Datensätzen", "de"),
    ],
)
def test_a_plural_of_one_is_found(said, language):
    assert plurals_of_one(said, language)


@pytest.mark.parametrize("said", ["1 of 20 records", "1,001 records", "0.1 records", "11 records", "rate 1, records"])
def test_what_is_no_plural_of_one_is_left(said):
    assert not plurals_of_one(said, "en")


@pytest.mark.parametrize("language", ["en", "de"])
def test_words_that_know_no_singular_are_found(language, monkeypatch):
    monkeypatch.setattr(ev.RandomChoiceEvent, "words", EventWords("random choice", "%(picks)s records at random"))
    with translation.override(language):
        assert any(plurals_of_one(said, "en") for event in ONES for said in told(event))
