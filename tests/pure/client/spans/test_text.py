"""Tokens, spans and tags of a text."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.features.normal import Words
from dpal.spans.text import MAX_TOKENS, Span, beyond_cut, canonical, cut, read, spans_of, tags, tokens, written

TYPES = ("person", "date")
TEXTS = st.text(st.sampled_from("aB7 '’.-$é天\t\u200b"), max_size=200) | st.text(max_size=60)


def test_tokens_are_words_without_punctuation() -> None:
    text = "‘What's’ Anna-Lena's 7:30 plan?"
    assert [text[start:end] for start, end in tokens(text)] == ["What's", "Anna", "Lena's", "7", "30", "plan"]


@given(TEXTS)
def test_tokens_are_in_order_and_hold_a_word_each(text: str) -> None:
    found = tokens(text)
    assert all(start < end for start, end in found)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))
    outside = list(text)
    for start, end in found:
        outside[start:end] = " " * (end - start)
    assert Words("L1").flat(["".join(outside)]) == [b"\0"]


@st.composite
def tagged_texts(draw: st.DrawFn) -> tuple[str, tuple[Span, ...]]:
    text = draw(TEXTS)
    found = tokens(text)[:MAX_TOKENS]
    tagged = draw(st.lists(st.integers(0, 2), min_size=len(found), max_size=len(found)))
    return text, spans_of(text, tagged, TYPES)


@given(tagged_texts())
def test_spans_of_whole_tokens_come_back_from_their_tags(case: tuple[str, tuple[Span, ...]]) -> None:
    text, spans = case
    assert spans_of(text, tags(text, spans, TYPES), TYPES) == spans
    assert read(written(reversed(spans))) == spans == canonical(reversed(spans), text=text)
    assert not beyond_cut(text, spans)


@pytest.mark.parametrize(
    ("spans", "refused"),
    [
        ([Span(2, 2, "date")], "empty"),
        ([Span(3, 1, "date")], "empty"),
        ([Span(-1, 2, "date")], "within"),
        ([Span(8, 11, "date")], "within"),
        ([Span(0, 5, "date"), Span(4, 6, "person")], "overlaps"),
        ([Span(0, 3, "date"), Span(0, 3, "person")], "overlaps"),
        ([Span(0, 4, "date")], "white space"),
        ([Span(3, 6, "date")], "white space"),
    ],
)
def test_other_spans_are_refused(spans: list[Span], refused: str) -> None:
    with pytest.raises(ValueError, match=refused):
        canonical(spans, text="ten marks.")


def test_a_token_takes_the_type_of_the_first_span_that_touches_it() -> None:
    text = "on monday morning"
    assert tags(text, [Span(5, 7, "date"), Span(7, 12, "person")], TYPES) == [0, 2, 1]
    with pytest.raises(ValueError, match="types"):
        tags(text, [Span(0, 2, "place")], TYPES)


def test_tokens_beyond_the_cut_are_told() -> None:
    text = "a " * MAX_TOKENS
    assert cut(text) is None
    assert not beyond_cut(text, [Span(0, len(text), "date")])
    longer = text + "b"
    assert cut(longer) == len(text) - 1
    assert beyond_cut(longer, [Span(len(text), len(longer), "date")])
    assert not beyond_cut(longer, [Span(0, 1, "date")])
    assert tags(longer, [Span(len(text), len(longer), "date")], TYPES) == [0] * MAX_TOKENS


@pytest.mark.parametrize("stored", ["{}", "[[1, 2]]", '[[1, 2.0, "date"]]', '[[true, 2, "date"]]', "["])
def test_other_forms_are_refused(stored: str) -> None:
    with pytest.raises(ValueError, match=r"spans|Expecting"):
        read(stored)
