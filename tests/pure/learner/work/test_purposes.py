import pytest

from learner.strategies.clustered_uncertainty import ClusteredUncertainty
from learner.strategies.uncertainty import Uncertainty
from privacy.accounting import events as ev


@pytest.mark.parametrize(
    ("strategy", "summary"),
    [
        (
            Uncertainty("margin"),
            "7 of 1200 texts chosen by margin between the two likeliest classes, computed from paid outputs only",
        ),
        (
            ClusteredUncertainty("entropy"),
            "7 of 1200 texts chosen by clusters and doubt, computed from paid outputs only",
        ),
    ],
)
def test_free_work_names_its_ranking(strategy, summary):
    assert strategy.event_for(pool_size=1200, picks=7, series="single").summary() == summary


def test_a_stored_operation_reads_as_it_was_written():
    event = ev.event_from_json(ev.PostProcessingEvent("training on randomised answers").to_json())
    assert event.summary() == "training on randomised answers, computed from paid outputs only"
