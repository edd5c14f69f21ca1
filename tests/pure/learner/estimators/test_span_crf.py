"""Private conditional random field over spans: price, purity, replay, what it finds, and version 0."""

import numpy as np
import pytest

from dpal.errors import NotGenuine
from dpal.recompute import recompute
from dpal.recompute.charged import refuse_uncharged
from dpal.recompute.span_crf import span_start
from dpal.recompute.transcript import Transcript
from dpal.spans.model import SpanModel
from dpal.spans.text import MAX_TOKENS, Span
from learner.estimators.descriptions import described_by
from learner.estimators.span_crf import PrivateSpanCrf, held_out
from learner.estimators.span_words import span_examples, span_version_zero
from learner.features.span_tables import span_features
from privacy.accounting.events import event_from_json
from privacy.accounting.steps import SpanStepsEvent
from tests.transcripts import charged

TYPES = ("date", "person")
WORDS = ("Call {name} on {day} please", "Is {name} here?", "What is due {day}", "stop", "{day} with {name}", "")
NAMES, DAYS = ("Anna", "Peter Pan", "Dr. Who"), ("monday", "the 3rd of may", "tomorrow")


def records(n, seed=0):
    rng, texts, spans = np.random.default_rng(seed), [], []
    for _record in range(n):
        name, day = rng.choice(NAMES), rng.choice(DAYS)
        text = str(rng.choice(WORDS)).format(name=name, day=day)
        found = [(text.find(value), value, kind) for value, kind in ((day, "date"), (name, "person"))]
        texts.append(text)
        spans.append(tuple(Span(start, start + len(value), kind) for start, value, kind in found if start >= 0))
    return texts, spans


def make(**options):
    return PrivateSpanCrf(**{"epsilon": 2.0, "types": TYPES, "features": span_features(), "steps": 3} | options)


def test_a_seed_can_never_be_released_and_the_price_is_known_before():
    estimator = make()
    assert not estimator.releasable
    before = estimator.event_for()
    texts, spans = records(20)
    assert estimator.fit(texts, spans).releasable
    assert estimator.privacy_event_ == before == event_from_json(before.to_json())
    assert 1.99 < before.cost().epsilon <= 2.0
    assert not make(random_state=1).fit(texts, spans).releasable


def test_weights_are_recomputed_bit_for_bit_and_only_from_what_was_charged():
    fitted = make().fit(*records(30))
    made, privacy = charged(fitted.transcript_, fitted.privacy_event_)
    again = recompute(Transcript.from_json(made.to_json()))
    assert (again.coef == fitted.coef_).all()
    refuse_uncharged(made, privacy)
    cheaper = SpanStepsEvent(**{**_fields(fitted.privacy_event_), "sigma": 2 * fitted.privacy_event_.sigma})
    with pytest.raises(NotGenuine, match="less noise"):
        refuse_uncharged(*charged(fitted.transcript_, cheaper))
    fewer = SpanStepsEvent(**{**_fields(fitted.privacy_event_), "steps": 2})
    with pytest.raises(NotGenuine, match="more answers"):
        refuse_uncharged(*charged(fitted.transcript_, fewer))


def _fields(event):
    return {name: value for name, value in event.to_json().items() if name not in ("kind", "version")}


def test_a_pick_is_paid_with_the_fit_and_replayed():
    before = span_start(3, span_features().n_features)
    estimator = make(epsilon=3.0, before=before, steps=5)
    event = estimator.event_for()
    assert 2.99 < event.cost().epsilon <= 3.0
    assert event_from_json(event.to_json()) == event
    fitted = estimator.fit(*records(40))
    made, privacy = charged(fitted.transcript_, event)
    refuse_uncharged(made, privacy)
    assert (recompute(Transcript.from_json(made.to_json())).coef == fitted.coef_).all()


@pytest.mark.parametrize(("n", "epsilon", "kept"), [(6, 0.5, True), (400, 20.0, False)])
def test_a_fit_is_released_only_where_it_is_better(n, epsilon, kept):
    """Seeded; six records under that noise never pass the bar of two deviations, 400 clear it by twenty."""
    before = span_start(3, span_features().n_features)
    fitted = make(epsilon=epsilon, before=before, steps=20, random_state=2).fit(*records(n))
    assert (fitted.coef_ == before).all() == kept


@pytest.mark.parametrize("picked", [False, True])
def test_spans_of_held_out_texts_are_counted_at_the_price_of_the_training(picked):
    before = span_start(3, span_features().n_features) if picked else None
    texts, spans = records(400)
    estimator = make(epsilon=8.0, before=before, steps=5, held_out_share=0.4)
    event, without = estimator.event_for(), make(epsilon=8.0, before=before, steps=5).event_for()
    assert 7.99 < event.cost().epsilon <= 8.0
    assert event.cost().delta <= estimator.delta
    assert event.inner.gaussian_mu() == pytest.approx(without.gaussian_mu(), rel=1e-5)
    assert event_from_json(event.to_json()) == event
    fitted = estimator.fit(texts, spans)
    query, _sensitivity, scale, counts = fitted.transcript_.answers[-1]
    assert (query, scale) == ("span_counts", event.scale)
    held = [own for text, own in zip(texts, spans, strict=True) if held_out(text, 0.4)]
    assert 0 < len(held) < 400
    # Right and missed are the true ones; noise exceeds six deviations once in 10**9 runs.
    assert abs(counts[0] + counts[1] - sum(map(len, held))) < 6 * np.sqrt(2) * scale
    made, privacy = charged(fitted.transcript_, event)
    refuse_uncharged(made, privacy)
    assert (recompute(Transcript.from_json(made.to_json())).coef == fitted.coef_).all()
    with pytest.raises(NotGenuine, match="more answers"):
        refuse_uncharged(*charged(fitted.transcript_, without))


def test_texts_that_are_held_out_are_not_learned_from_and_the_others_are_not_counted():
    texts, spans = records(200)
    options = {"random_state": 4, "held_out_share": 0.3, "epsilon": 8.0}
    fitted = make(**options).fit(texts, spans)
    other = [() if held_out(text, 0.3) else own for text, own in zip(texts, spans, strict=True)]
    again = make(**options).fit(texts, other)
    assert (again.coef_ == fitted.coef_).all()
    assert (again.transcript_.answers[-1][3] != fitted.transcript_.answers[-1][3]).any()
    assert make(epsilon=8.0, held_out_share=0.3).fit([], []).releasable


def test_the_same_words_are_held_out_in_each_release():
    assert held_out("Call  Anna", 0.5) == held_out("call anna ", 0.5)
    assert not any(held_out(text, 0.0) for text in records(50)[0])
    texts = [f"message {number}" for number in range(4_000)]
    # Seeded by the texts themselves: four deviations about a quarter.
    assert abs(sum(held_out(text, 0.25) for text in texts) - 1_000) < 4 * 27.4
    assert all(held_out(text, 0.5) for text in texts if held_out(text, 0.25))


def test_spans_of_other_types_are_refused_in_texts_that_are_held_out():
    text = next(f"call Anna {number}" for number in range(99) if held_out(f"call Anna {number}", 0.5))
    with pytest.raises(ValueError, match="types"):
        make(held_out_share=0.5).fit([text], [(Span(5, 9, "place"),)])


def test_spans_are_found_and_their_scores_are_probabilities():
    texts, spans = records(300)
    model = make(epsilon=20.0, steps=20, random_state=1).fit(texts, spans).model_
    found = model.predict(texts[:60])
    right = sum(
        {(one.start, one.end, one.type) for one in said} == {(s.start, s.end, s.type) for s in truth}
        for said, truth in zip(found, spans, strict=False)
    )
    assert right >= 54
    assert all(0 < one.score <= 1 for said in found for one in said)
    alone = [model.predict([text])[0] for text in texts[:60]]
    assert alone == found


def test_what_lies_beyond_the_cut_moves_nothing():
    long = "call Anna " * MAX_TOKENS
    first, second = (
        make(random_state=5).fit([long + end], [(Span(5, 9, "person"), *beyond)]).coef_
        for end, beyond in (("", ()), ("on monday", (Span(len(long) + 3, len(long) + 9, "date"),)))
    )
    assert (first == second).all()


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"types": ("a", "a")}, "distinct"),
        ({"types": ()}, "distinct"),
        ({"clip": 1e-3}, "clip"),
        ({"adjacency": "other"}, "adjacency"),
        ({"steps": 0}, "steps"),
        ({"held_out_share": 1.0}, "held_out_share"),
        ({"held_out_share": -0.1}, "held_out_share"),
    ],
)
def test_other_parameters_are_refused(options, refused):
    with pytest.raises(ValueError, match=refused):
        make(**options).event_for()


def test_spans_of_other_types_are_refused():
    with pytest.raises(ValueError, match="types"):
        make().fit(["call Anna"], [(Span(5, 9, "place"),)])


def test_values_and_sentences_make_version_zero():
    lines = [
        "date: remind me {tomorrow|on monday}",
        "date: next week",
        "person: call {Anna|my mum} please",
        "person: Tom",
    ]
    described = described_by(lines, TYPES)
    examples = span_examples(TYPES, described)
    assert [text[span.start : span.end] for text, span in examples] == [
        "tomorrow",
        "on monday",
        "next week",
        "Anna",
        "my mum",
        "Tom",
    ]
    weights = span_version_zero(TYPES, described, span_features())
    (found,) = SpanModel(TYPES, weights, span_features()).predict(["please call Anna"])
    assert [(one.start, one.end, one.type) for one in found] == [(12, 16, "person")]
    assert span_version_zero(TYPES, {}, span_features()) is None
    assert (span_version_zero(TYPES, described, span_features()) == weights).all()


def test_white_space_around_examples_is_no_part_of_a_span_and_empty_ones_are_left_out():
    described = described_by(['person: " Anna "', "person: call {Tom| } now"], TYPES)
    examples = span_examples(TYPES, described)
    assert [text[span.start : span.end] for text, span in examples] == ["Anna", "Tom"]
