import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from learner.features.static_encoder import TABLES, read_table

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
