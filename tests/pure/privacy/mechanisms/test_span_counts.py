"""Counts of spans: what one record moves, by enumeration and at random, and what is paid for."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.spans.text import Span
from privacy.accounting.counts import counts_sensitivity
from privacy.accounting.events import MeasuredFitEvent, SpanStepsEvent
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.span_counts import span_counts, span_counts_queries

TYPES = ("date", "person")
EVENT = MeasuredFitEvent(SpanStepsEvent(1, 4, 3, 1.0, 0.5, 1.0, 9.0), 8, 1e-6)
SPANS = st.lists(
    st.builds(lambda place, kind: Span(place, place + 1, kind), st.integers(0, 31), st.sampled_from(TYPES)),
    max_size=32,
    unique_by=lambda span: span.start,
)
RECORDS = st.lists(st.tuples(SPANS, SPANS), max_size=4)


def counted(records, cap):
    return span_counts([true for true, _ in records], [found for _, found in records], TYPES, most=cap)


@given(records=RECORDS, one=st.tuples(SPANS, SPANS), other=st.tuples(SPANS, SPANS), cap=st.integers(1, 9))
def test_one_record_moves_counts_by_no_more_than_is_charged(records, one, other, cap):
    without, first, second = (counted([*records, *more], cap) for more in ([], [one], [other]))
    assert np.linalg.norm(first - without) <= counts_sensitivity(cap)
    assert np.linalg.norm(first - second) <= counts_sensitivity(cap, adjacency="replace")


def test_the_sensitivity_is_reached():
    many = [Span(place, place + 1, "date") for place in range(32)]
    others = [Span(place, place + 1, "person") for place in range(32)]
    wrong, right = counted([(many, others)], 8), counted([(many, many)], 8)
    assert wrong.tolist() == [0, 8, 8]
    assert right.tolist() == [8, 0, 0]
    assert np.linalg.norm(wrong) == pytest.approx(counts_sensitivity(8))
    assert math.dist(wrong, right) == pytest.approx(counts_sensitivity(8, adjacency="replace"))
    # The broken twin has no cap.
    assert np.linalg.norm(counted([(many, others)], 32)) == pytest.approx(4 * counts_sensitivity(8))


def test_one_evaluation_is_paid_for_and_told_with_its_noise():
    texts, truths = ["call Anna"], [[Span(5, 9, "person")]]
    queries = span_counts_queries(
        texts, truths, TYPES, EVENT, find=lambda weights, texts: truths, rng=SimulationRandom(1)
    )
    told = queries["span_counts"](np.zeros((3, 4)))
    assert (told.query, told.sensitivity, told.scale) == ("span_counts", counts_sensitivity(8), EVENT.scale)
    assert np.abs(told.answer - [1, 0, 0]).max() < 20 * EVENT.scale
    with pytest.raises(ValueError, match="one evaluation"):
        queries["span_counts"](np.zeros((3, 4)))
