import hashlib
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.gate.normalizers import (
    COMMON_WORDS,
    FUNCTION_WORDS,
    MASKS,
    OTHER,
    SLOTS,
    Normalizer,
    normalize_text,
    normalize_texts,
)

ASCII = st.text(st.characters(max_codepoint=127))
WIDE = st.text(st.characters(exclude_categories=["Cs"]))
PHRASES = st.lists(
    st.sampled_from(
        ["set", "an", "Alarm", "for", "7", "twenty", "five", "3pm", "Mondays,", "May", "<number>", "?", "'s"]
    )
).map(" ".join)
TEXTS = st.lists(st.none() | ASCII | WIDE | PHRASES)


@pytest.mark.one_in(6)
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


@pytest.mark.one_in(3)
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


@pytest.mark.parametrize(
    ("text", "l4", "l5"),
    [
        ("Play Thunderstruck by AC/DC in the kitchen", "<word> in kitchen play", "in kitchen play"),
        (
            "remind me about Grandma's party on the 3rd",
            "<number> <word> about on party remind",
            "<number> about on party remind",
        ),
        ("weather in Ulm on Friday", "<weekday> <word> in on weather", "<weekday> in on weather"),
        ("Schreib das auf", "<word>", ""),
        ("what time is it", "time what", "time what"),
        ("is it", "", ""),
    ],
)
def test_generalising_rules_never_change(text, l4, l5):
    assert normalize_text(text, Normalizer.L4) == l4
    assert normalize_text(text, Normalizer.L5) == l5


def test_the_public_list_never_changes():
    """A word more or less would count texts together that were counted apart when the ledger was written."""
    digest = hashlib.sha256("\n".join(sorted(COMMON_WORDS)).encode()).hexdigest()
    assert (len(COMMON_WORDS), digest[:16]) == (718, "234d9fac7887d0a4")
    assert not COMMON_WORDS & FUNCTION_WORDS, "a word that only binds others is dropped before the list is read"
    assert not COMMON_WORDS & set(MASKS)


@given(words=st.lists(st.sampled_from([*sorted(COMMON_WORDS)[::40], "ulm", "grandma", "xyzzy", "7"]), max_size=6))
def test_nothing_beyond_the_list_is_shown(words):
    """Whatever was said, L4 and L5 show listed words and slots."""
    shown = set(normalize_text(" ".join(words), Normalizer.L4).split())
    assert shown <= COMMON_WORDS | SLOTS
    assert set(normalize_text(" ".join(words), Normalizer.L5).split()) == shown - {OTHER}
