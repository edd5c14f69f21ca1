import pytest
from django.utils import translation

from annotation.wording import localized
from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.uncertainty import Uncertainty
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
