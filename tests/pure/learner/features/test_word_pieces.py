"""Words are cut as the published tokeniser cuts them, which stands beside as the second implementation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from learner.features import word_pieces
from learner.features.static_encoder import TABLES, read_table
from learner.features.word_pieces import WordPieces

TEXTS = [
    "Call 0871-FREE now!! £1,000 prize",
    "żółć ÉCOLE naïve Ünïted",
    "don't_stop@me.com #1 $5 ^_^ ~x~",
    "東京 tower 한국어 ひらがな",
    "unbelievably antidisestablishmentarianism",
    "tab\tand\nline\u200bzero\u00adsoft\x07bell",
    "x" * 101 + " " + "y" * 100,
    "",
]


@pytest.fixture(scope="module")
def published():
    """The library's own tokeniser over the shipped vocabulary."""
    numbers = read_table(next(iter(TABLES))).pieces._numbers
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_known_texts(published, text):
    assert read_table("minilm-static").pieces.of_text(text) == published.encode(text).ids


@pytest.mark.slow
@settings(max_examples=300)
@given(text=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=60))
def test_any_latin_text(published, text):
    """Control characters apart: normalised texts hold none, and the library joins words across some of them."""
    assert read_table("minilm-static").pieces.of_text(text) == published.encode(text).ids


def test_what_is_remembered_is_dropped_and_made_anew(monkeypatch):
    monkeypatch.setattr(word_pieces, "MOST_REMEMBERED", 2)
    pieces = WordPieces(["[UNK]", "play", "##s", "jazz"])
    texts = ["plays jazz", "jazz play", "play plays unknown", "plays jazz"]
    assert [pieces.of_text(text) for text in texts] == [[1, 2, 3], [3, 1], [1, 1, 2, 0], [1, 2, 3]]
    assert len(pieces._remembered) <= 2


def test_a_vocabulary_without_the_unknown_piece_is_refused():
    with pytest.raises(ValueError, match="UNK"):
        WordPieces(["play"])
