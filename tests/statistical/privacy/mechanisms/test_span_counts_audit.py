"""Counts of spans have the noise they are charged for; an audit finds the twin that counts all spans of a record.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from dpal.spans.text import Span
from privacy.accounting.counts import measured_fit_event
from privacy.accounting.events import MeasuredFitEvent, SpanStepsEvent
from privacy.evidence import gaussian_audit, one_by_one
from privacy.mechanisms import span_counts
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.span_counts import span_counts_queries

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS = 4_000 * MORE
TYPES = ("date", "person")
STEPS = SpanStepsEvent(1, 4, 3, 1.0, 0.5, 0.5, 1e3)
EVENT = measured_fit_event(STEPS, spans_per_record=8)
MU = EVENT.gaussian_mu()
# Thirty-two spans, each of which the model gives the other type.
TRUE = [Span(place, place + 1, "date") for place in range(32)]
FOUND = [Span(place, place + 1, "person") for place in range(32)]
RECORD = [("a b " * 16, TRUE)]
NOBODY = RECORD[:0]
WEIGHTS = np.zeros((3, 4))
pytestmark = pytest.mark.statistical


def told(records: list[tuple[str, list[Span]]], event: MeasuredFitEvent, rng: SimulationRandom) -> np.ndarray:
    queries = span_counts_queries(
        [text for text, _ in records],
        [spans for _, spans in records],
        TYPES,
        event,
        find=lambda weights, texts: [FOUND for _ in texts],
        rng=rng,
    )
    return queries["span_counts"](WEIGHTS).answer


def audited() -> float:
    """Return the least ratio that one record's presence shows, by the likelihood ratio of the counts."""

    def ratio(records: list[tuple[str, list[Span]]], rng: SimulationRandom) -> float:
        return float(told(records, EVENT, rng) @ np.array([0.0, 1.0, 1.0]))

    options = {"trials": TRIALS, "confidence": 0.9999, "rng": SimulationRandom(20_261_130)}
    return gaussian_audit(one_by_one(ratio), RECORD, NOBODY, **options).mu_lower_bound


def test_one_record_against_none() -> None:
    assert 0.2 * MU < audited() <= MU


def test_a_twin_without_a_cap_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin counts all 32 spans of a record with the noise of eight."""
    counted = span_counts.counted
    monkeypatch.setattr(span_counts, "counted", lambda truths, found, types, *, most: counted(truths, found, types))
    assert audited() > 2 * MU


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.05, False), (0.95, False)])
def test_noise_variance(factor: float, accepted: bool) -> None:
    """Seeded, 4.2 sigma: false alarm 3e-5; a scale 5 % off is 7 or more away."""
    event, rng = MeasuredFitEvent(STEPS, 8, EVENT.scale * factor), SimulationRandom(7)
    draws = np.array([told(NOBODY, event, rng) for _ in range(4_000)]) / EVENT.scale
    z_score = ((draws**2).mean() - 1) * np.sqrt(draws.size / 2)
    assert (abs(z_score) < 4.2) == accepted
