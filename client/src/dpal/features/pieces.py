"""BERT's uncased tokeniser."""

from collections.abc import Sequence
from typing import Any

LONGEST_WORD = 100
UNKNOWN = "[UNK]"


def uncased_tokenizer(vocabulary: Sequence[str]) -> Any:
    """Return the tokeniser that cuts texts into pieces of a vocabulary; it adds no marks of begin and end.

    References
    ----------
    .. [1] Devlin et al., "BERT", NAACL 2019; the uncased vocabulary and its basic tokeniser.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers  # noqa: PLC0415  # slow import

    numbers = {piece: number for number, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
