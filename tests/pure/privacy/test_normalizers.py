"""The array form of a rule equals its form for one text."""

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.normalizers import Normalizer, normalize_text, normalize_texts

ASCII = st.text(st.characters(max_codepoint=127))
WIDE = st.text(st.characters(exclude_categories=["Cs"]))
PHRASES = st.lists(
    st.sampled_from(
        ["set", "an", "Alarm", "for", "7", "twenty", "five", "3pm", "Mondays,", "May", "<number>", "?", "'s"]
    )
).map(" ".join)
TEXTS = st.lists(st.none() | ASCII | WIDE | PHRASES)


@pytest.mark.parametrize("normalizer", Normalizer)
@given(texts=TEXTS, cut=st.integers(0, 3))
@example(texts=["", " ", "'", "a b", "", "\x1c", "x "], cut=0)
@example(texts=["Straße", "ǅ", "ﬁn", None, "İ", "a\u200bb"], cut=1)
def test_arrays_follow_the_reference(normalizer, texts, cut):
    array = pa.array(texts, pa.string()).slice(cut)
    expected = [None if text is None else normalize_text(text, normalizer) for text in texts[cut:]]
    assert normalize_texts(array, normalizer).to_pylist() == expected


@pytest.mark.parametrize("normalizer", Normalizer)
@given(text=WIDE | PHRASES)
def test_a_normal_form_is_its_own_normal_form(normalizer, text):
    once = normalize_text(text, normalizer)
    assert normalize_text(once, normalizer) == once


@pytest.mark.parametrize("normalizer", Normalizer)
def test_every_character_settles(normalizer):
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in {"Cs", "Cn", "Co"}:
            continue
        once = normalize_text(f"a{chr(code)}b", normalizer)
        assert normalize_text(once, normalizer) == once, hex(code)


@pytest.mark.parametrize(
    ("text", "l0", "l1"),
    [
        ("  Play\tSOME  jazz!! ", "Play SOME jazz!!", "play some jazz"),
        ("What's up, doc?", "What's up, doc?", "whats up doc"),
        ("e-mail", "e-mail", "e mail"),
        ("ＡＢＣ①", "ＡＢＣ①", "abc1"),
        ("Straße", "Straße", "strasse"),
        ("Cafe\u0301", "Café", "café"),
        ("$5 + 3", "$5 + 3", "$5 + 3"),
        ("zero\u200bwidth\x00", "zerowidth", "zerowidth"),
        ("?!", "?!", ""),
        ("\u00a0\u2003", "", ""),
    ],
)
def test_rules_never_change(text, l0, l1):
    """Stored entries were counted under these rules."""
    assert normalize_text(text, Normalizer.L0) == l0
    assert normalize_text(text, Normalizer.L1) == l1


@pytest.mark.parametrize(
    ("text", "l2", "l3"),
    [
        (
            "Set an alarm for 7:30 on Monday",
            "set an alarm for <number> on <weekday>",
            "<number> <weekday> alarm on set",
        ),
        ("wake me at twenty five past six", "wake me at <number> past <number>", "<number> past wake"),
        ("Call 555-0199, please!", "call <number> please", "<number> call"),
        ("Play Track 9 from 9 to 5", "play track <number> from <number> to <number>", "<number> play track"),
        ("remind me on the 3rd of October", "remind me on the <number> of <month>", "<month> <number> on remind"),
        ("may I march on Mondays?", "may i march on <weekday>", "<weekday> march may on"),
        ("turn it up, turn it up", "turn it up turn it up", "turn up"),
        ("what is the", "what is the", "what"),
        ("is it", "is it", ""),
        ("٣ апельсина", "<number> апельсина", "<number> апельсина"),
        ("?!", "", ""),
    ],
)
def test_rules_about_words_never_change(text, l2, l3):
    """Stored entries were counted under these rules."""
    assert normalize_text(text, Normalizer.L2) == l2
    assert normalize_text(text, Normalizer.L3) == l3


@given(first=PHRASES | WIDE, second=PHRASES | WIDE)
def test_a_level_groups_what_the_one_before_groups(first, second):
    levels = list(Normalizer)
    equal = [normalize_text(first, level) == normalize_text(second, level) for level in levels]
    assert equal == sorted(equal)


def test_every_level_says_what_annotators_see():
    assert len({level.summary for level in Normalizer}) == len(Normalizer)


def test_empty_array():
    assert len(normalize_texts(pa.array([], pa.string()), Normalizer.L1)) == 0
