"""Texts to vectors by a table: each word piece has a vector, a text is their sum, and no network runs."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpal.features.clipping import check_norm_bound
from dpal.features.word_vectors import PieceTable, blocks_of, sums_of
from learner.features.base import Featurizer, TextFeaturizer, flat_words, wanted_digest
from learner.features.choice import READS_TEXTS_ALONE, FeaturesChoice, RecordShape
from privacy.choices import Sound, parameter
from privacy.gate.normalizers import Normalizer
from privacy.wording import gettext_noop as _

WEIGHTS = Path(__file__).parent / "weights"
# Tables that ship with the program, by name; `learner.features.distil` made them.
TABLES = {"minilm-static": WEIGHTS / "minilm-static.npz"}
# What they are called in a release, whose licence asks that the text travels with the table.
ENCODER, ENCODER_LICENCE = "encoder.npz", "encoder.md"
# Columns that suit most tasks, and the most that help, see docs/results/utility.md.
COLUMNS, MOST_COLUMNS = 128, 256


class StaticEncoder(TextFeaturizer):
    """Sum of the vectors of a text's word pieces, in a public table, scaled to the norm bound.

    The columns of the table are principal directions of a public corpus in falling order, so the first few are the
    best few: no projection is drawn and nothing is fitted. The row of a text is the same, bit for bit, whatever other
    texts are encoded with it.

    Parameters
    ----------
    table : str
        A key of `TABLES`.
    table_sha256 : str, optional
        Digest of the table, checked at once; by default that of the shipped one.
    n_features : int
        Leading columns to keep, 2 <= n_features <= 256. Few columns mean little training noise.
    norm_bound : float
        L2 norm of every text with at least one known word.
    normalizer : str
        Rule of `privacy.gate.normalizers` applied first, as the gate does.

    Raises
    ------
    EncoderMissing
        If the shipped table is not that of the digest.
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] Arora, Liang, Ma, "A simple but tough-to-beat baseline for sentence embeddings", ICLR 2017.
    .. [2] Tulkens, van Dongen, "Model2Vec: fast state-of-the-art static embeddings", 2024.
    """

    kind = "static_encoder"
    knows_words = True
    is_quick = True

    def __init__(
        self,
        table: str = "minilm-static",
        table_sha256: str | None = None,
        n_features: int = 256,
        norm_bound: float = 1.0,
        normalizer: str = "L1",
    ) -> None:
        if table not in TABLES:
            raise ValueError(f"table must be one of {sorted(TABLES)}, got {table!r}")
        self.table = table
        self.norm_bound = check_norm_bound(norm_bound)
        self.normalizer = Normalizer(normalizer)
        self.table_sha256 = wanted_digest(table, found=table_digest(table), wanted=table_sha256)
        width = self.width(table)
        if not 2 <= n_features <= width:
            raise ValueError(f"n_features must be within [2, {width}], got {n_features}")
        self.n_features = int(n_features)

    @staticmethod
    def width(table: str = "minilm-static") -> int:
        return int(read_table(table).vectors.shape[1])

    @property
    def public_mean(self) -> NDArray[np.float64]:
        return public_statistics(self.table)[0][: self.n_features]

    @property
    def public_moments(self) -> NDArray[np.float64]:
        kept = public_statistics(self.table)[1][: self.n_features, : self.n_features]
        scaled: NDArray[np.float64] = kept / np.trace(kept)
        return scaled

    def parameters(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "table_sha256": self.table_sha256,
            "n_features": self.n_features,
            "norm_bound": self.norm_bound,
            "normalizer": self.normalizer.value,
        }

    def attachments(self) -> dict[str, bytes]:
        licence = b"\n".join((WEIGHTS / name).read_bytes() for name in ("README.md", "WORDNET-LICENSE.txt"))
        table = {ENCODER: TABLES[self.table].read_bytes(), ENCODER_LICENCE: licence}
        return table | super().attachments()

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        blocks = map(flat_words, blocks_of(texts))
        return np.concatenate(list(sums_of(read_table(self.table), self.n_features, blocks)))


@lru_cache(maxsize=2)
def table_digest(table: str) -> str:
    with TABLES[table].open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=2)
def read_table(table: str) -> PieceTable:
    return PieceTable.read(TABLES[table])


@lru_cache(maxsize=2)
def public_statistics(table: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean row of a public corpus through a table, and the mean of x x^T, not scaled to trace one."""
    with np.load(TABLES[table], allow_pickle=False) as held:
        return held["mean"].astype(np.float64), held["moments"].astype(np.float64)


@dataclass(frozen=True)
class StaticTable(FeaturesChoice):
    name: ClassVar[str] = "static_encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(data_kinds=("text",), why_not=dict.fromkeys(("table", "image"), READS_TEXTS_ALONE))

    text_columns: int = parameter(
        COLUMNS,
        at_least=2,
        at_most=MOST_COLUMNS,
        data_kinds=("text",),
        label=_("Feature dimension"),
        help=_("Fewer mean less noise; more separate classes better."),
    )

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return StaticEncoder(n_features=self.text_columns, normalizer=shape.normalizer)
