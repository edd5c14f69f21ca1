"""Words to the numbers of their pieces, as BERT's uncased tokeniser cuts them."""

import re
import unicodedata
from collections.abc import Mapping

LONGEST_WORD = 100
UNKNOWN = "[UNK]"
CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf])")


class WordPieces:
    """Greedy cutting of words into the longest pieces of a vocabulary.

    Parameters
    ----------
    numbers : mapping of str to int
        Pieces and their numbers; those that continue a word begin with ``##``.

    References
    ----------
    .. [1] Devlin et al., "BERT", NAACL 2019; the uncased vocabulary and its basic tokeniser.
    """

    def __init__(self, numbers: Mapping[str, int]) -> None:
        self._numbers = numbers
        self._unknown = [numbers[UNKNOWN]]

    def of_text(self, text: str) -> list[int]:
        """Return the numbers of all pieces of a text, without marks of begin and end."""
        return [number for word in text.split() for number in self.of_word(word)]

    def of_word(self, word: str) -> list[int]:
        """Return the numbers of the pieces of one word, which holds no white space."""
        return [number for part in _parts(word) for number in self._cut(part)]

    def _cut(self, part: str) -> list[int]:
        """Return the longest piece that begins the part, then the longest that goes on, and so forth."""
        if len(part) > LONGEST_WORD:
            return self._unknown
        numbers, start = [], 0
        while start < len(part):
            mark = "##" if start else ""
            ends = range(len(part), start, -1)
            end = next((end for end in ends if mark + part[start:end] in self._numbers), None)
            if end is None:
                return self._unknown
            numbers.append(self._numbers[mark + part[start:end]])
            start = end
        return numbers


def _parts(word: str) -> list[str]:
    """Return a word in lower case without accents, cut at punctuation, which stays, and at Chinese characters."""
    if word.isascii() and word.isalnum():
        return [word.lower()]
    visible = "".join(sign for sign in word if unicodedata.category(sign) not in ("Cc", "Cf") and sign != "\ufffd")
    spaced = CJK.sub(r" \1 ", visible)
    plain = "".join(sign for sign in unicodedata.normalize("NFD", spaced.lower()) if unicodedata.category(sign) != "Mn")
    return "".join(f" {sign} " if _is_punctuation(sign) else sign for sign in plain).split()


def _is_punctuation(sign: str) -> bool:
    # BERT counts all ASCII signs that are neither letters nor digits, such as $ and ^, which Unicode calls symbols.
    return unicodedata.category(sign).startswith("P") or ("!" <= sign <= "~" and not sign.isalnum())
