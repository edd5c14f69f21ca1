from typing import get_args

import pytest
from django.utils import translation

from annotation.budget.words import what_words
from annotation.wording import localized
from learner.pools.keys import CHOOSE_BLOCK, CHOOSE_QUESTIONS, SUGGEST_CLASSES, TRAIN_ON_GATE_OUTPUT, TRAIN_VERSION
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.uncertainty import MEASURE_WORDS, Measure, Uncertainty
from privacy.accounting import events as ev


@pytest.mark.parametrize(
    ("strategy", "english", "german"),
    [
        (
            Uncertainty("margin"),
            "7 of 1200 texts chosen by margin between the two likeliest classes, computed from paid outputs only",
            "7 von 1200 Texten ausgewählt nach: Abstand der beiden wahrscheinlichsten Klassen, allein aus bezahlten "
            "Ergebnissen berechnet",
        ),
        (
            ClusteredUncertainty("entropy"),
            "7 of 1200 texts chosen by clusters and doubt, computed from paid outputs only",
            "7 von 1200 Texten nach Clustern und Zweifel ausgewählt, allein aus bezahlten Ergebnissen berechnet",
        ),
    ],
)
def test_free_work_is_told_in_one_language(strategy, english, german):
    event = strategy.event_for(pool_size=1200, picks=7, series="single")
    assert event.summary() == english
    with translation.override("de"):
        assert localized(event.summary()) == german


@pytest.mark.parametrize("measure", get_args(Measure))
def test_every_measure_is_told(measure):
    with translation.override("de"):
        assert localized(MEASURE_WORDS[measure]) != MEASURE_WORDS[measure]


def test_a_stored_operation_is_told_by_its_words():
    event = ev.event_from_json(ev.PostProcessingEvent("training on randomised answers").to_json())
    with translation.override("de"):
        assert (
            localized(event.summary())
            == "Training auf verrauschten Antworten, allein aus bezahlten Ergebnissen berechnet"
        )
        assert localized(ev.PostProcessingEvent("a text of long ago").summary()).startswith(
            "a text of long ago, allein"
        )


PURPOSES = [
    (CHOOSE_QUESTIONS, "die Fragen einer Runde auswählen"),
    (CHOOSE_BLOCK, "einen Block von Fragen geheim auswählen"),
    (SUGGEST_CLASSES, "die Klassen vorschlagen, die eine Version für wahrscheinlich hält"),
    (TRAIN_VERSION, "eine Version des Modells trainieren"),
    (TRAIN_ON_GATE_OUTPUT, "eine Version des Modells auf dem trainieren, was durch die Schleuse kam"),
    ("gate over an upload", "Schleuse über einen Upload"),
    ("Count the queue", "Count the queue"),
]


@pytest.mark.parametrize(("purpose", "german"), PURPOSES)
def test_an_entry_of_nothing_known_is_told_by_its_purpose(purpose, german):
    """A purpose is stored as its English text, which the catalogue knows as a whole."""
    stored = str.__str__(purpose)
    asked = {"kind": "reserve", "subject": "", "purpose": stored, "event": {}, "uploads": {}}
    with translation.override("en"):
        assert what_words(**asked) == f"{purpose}."
    with translation.override("de"):
        assert what_words(**asked) == f"{german}."
