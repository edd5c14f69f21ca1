"""The array form of a rule equals its form for one text."""

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.normalizers import Normalizer, normalize_text, normalize_texts

ASCII = st.text(st.characters(max_codepoint=127))
WIDE = st.text(st.characters(exclude_categories=["Cs"]))
TEXTS = st.lists(st.none() | ASCII | WIDE)


@pytest.mark.parametrize("normalizer", Normalizer)
@given(texts=TEXTS, cut=st.integers(0, 3))
@example(texts=["", " ", "'", "a b", "", "\x1c", "x "], cut=0)
@example(texts=["Straße", "ǅ", "ﬁn", None, "İ", "a\u200bb"], cut=1)
def test_arrays_follow_the_reference(normalizer, texts, cut):
    array = pa.array(texts, pa.string()).slice(cut)
    expected = [None if text is None else normalize_text(text, normalizer) for text in texts[cut:]]
    assert normalize_texts(array, normalizer).to_pylist() == expected


@pytest.mark.parametrize("normalizer", Normalizer)
@given(text=WIDE)
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


def test_empty_array():
    assert len(normalize_texts(pa.array([], pa.string()), Normalizer.L1)) == 0
