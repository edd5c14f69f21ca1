"""Texts to vectors by a published sentence encoder, whose weights a release names by digest."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dpal import encoders
from dpal.errors import NotGenuine
from dpal.features.base import Featurizer, Rows, scaled_to
from dpal.features.images import sign_matrix
from dpal.features.normal import Words
from dpal.features.pieces import WordPieces
from dpal.features.transformer import Transformer

LONGEST_TEXT_TOKENS = 128
BLOCK_TEXTS = 2048
# Texts of one length are encoded together; this many keep a block's temporaries within a few MiB.
BLOCK_TOKENS = 4096
BEGIN, END = "[CLS]", "[SEP]"
# The published tokeniser whose cutting `WordPieces` repeats; any other is refused.
NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}


class Sentences(Featurizer):
    """Mean of a public transformer's last layer over the pieces of a text, scaled to the norm bound.

    References
    ----------
    .. [1] Reimers, Gurevych, "Sentence-BERT", EMNLP 2019, section 3 (mean pooling).
    """

    records = "texts"
    # A network in float32 rounds as the machine's linear algebra does; another encoder is off by tenths.
    tolerance = 1e-4

    def __init__(self, words: Words, encoder: Mapping[str, Path], parameters: Mapping[str, Any]) -> None:
        self.words = words
        self.norm_bound = float(parameters["norm_bound"])
        self._tokens = Tokens(encoder[encoders.TOKENIZER])
        self._transformer = _read(encoder[encoders.CONFIG], encoder[encoders.WEIGHTS])
        width, kept = self._transformer.width, int(parameters["n_features"])
        self._signs: Rows | None = None
        if kept < width:
            self._signs = sign_matrix(width, kept, seed=int(parameters["projection_seed"]))

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Sentences":
        """Build it with the weights that features.json names, from wherever they are on this machine."""
        encoder = encoders.find(str(parameters["encoder"]), str(parameters["weights_sha256"]), files)
        return cls(Words.from_release(parameters["normalizer"], files), encoder, parameters)

    def raw_rows(self, records: Sequence[str | None]) -> Iterator[Rows]:
        """Yield rows of a block of texts each; a text that a block holds twice is encoded once."""
        for start in range(0, len(records), BLOCK_TEXTS):
            places: dict[tuple[int, ...], int] = {}
            texts = self._tokens.of(self.words.flat(records[start : start + BLOCK_TEXTS]))
            numbers = [places.setdefault(text, len(places)) for text in texts]
            rows = self._encoded(list(places))
            if self._signs is not None:
                rows = rows @ self._signs
            yield scaled_to(rows, self.norm_bound)[numbers]

    def _encoded(self, texts: list[tuple[int, ...]]) -> Rows:
        lengths = np.array([len(text) for text in texts])
        blocks = []
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            step = max(1, BLOCK_TOKENS // int(length))
            blocks += [places[start : start + step] for start in range(0, len(places), step)]
        rows = np.empty((len(texts), self._transformer.width))
        for block in blocks:
            rows[block] = self._transformer.mean_vectors(np.array([texts[place] for place in block], dtype=np.intp))
        return rows


class Tokens:
    """Words to the numbers that the encoder reads, by its published tokenizer.json."""

    def __init__(self, path: Path) -> None:
        said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model = said["model"]
        kinds = (model["type"], said["normalizer"], said["pre_tokenizer"]["type"])
        if kinds != ("WordPiece", NORMALIZER, "BertPreTokenizer"):
            raise NotGenuine("The sentence encoder cuts texts in a way that this version of dpal-client cannot.")
        vocabulary: dict[str, int] = model["vocab"]
        self._pieces = WordPieces(vocabulary)
        self._begin, self._end = vocabulary[BEGIN], vocabulary[END]
        # Marks such as [MASK] stand for themselves wherever a text holds them.
        self._marks = {str(one["content"]): int(one["id"]) for one in said["added_tokens"]}
        self._at_marks = re.compile("(" + "|".join(map(re.escape, self._marks)) + ")") if self._marks else None
        self._of_word = lru_cache(200_000)(self._cut)

    def of(self, flat: Sequence[bytes]) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of each text; the words of all come one after the other, each text ended by a zero."""
        found: list[int] = []
        for word in flat:
            if word != b"\0":
                found += self._of_word(word)
                continue
            yield (self._begin, *found[: LONGEST_TEXT_TOKENS - 2], self._end)
            found = []

    def _cut(self, word: bytes) -> list[int]:
        text = word.decode("utf-8", "surrogatepass")
        parts = self._at_marks.split(text) if self._at_marks else [text]
        pieces = ([self._marks[part]] if part in self._marks else self._pieces.of_word(_public(part)) for part in parts)
        return [number for cut in pieces for number in cut]


def _public(text: str) -> str:
    """Return a text without signs of private use, which the published tokenizer drops as it drops controls."""
    return "".join(sign for sign in text if unicodedata.category(sign) != "Co")


@lru_cache(maxsize=2)
def _read(config: Path, weights: Path) -> Transformer:
    return Transformer.read(config, weights)
