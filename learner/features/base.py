"""Base class of featurisers: clipped rows of declared dimension."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpal.features.base import scaled_to
from dpal.features.clipping import clip_rows
from learner.errors import EncoderMissing
from privacy.gate.normalizers import (
    COMMON_WORDS,
    FUNCTION_WORDS,
    MASKS,
    NUMBER,
    OTHER,
    WORD_RULES,
    Normalizer,
    normalize_texts,
)

WORDS = "words.json"
SCHEMA = "dpal-words/1"


def word_lists(normalizer: Normalizer) -> dict[str, bytes]:
    if normalizer not in WORD_RULES:
        return {}
    body = {
        "schema": SCHEMA,
        "masks": MASKS,
        "number": NUMBER,
        "other": OTHER,
        "function_words": sorted(FUNCTION_WORDS),
        "common_words": sorted(COMMON_WORDS),
    }
    return {WORDS: (json.dumps(body, sort_keys=True, indent=1) + "\n").encode()}


RowScaling = Literal["bounded", "unit"]
RecordKind = Literal["text", "table", "image"]

# Made up; words that models know and words they do not, marks, numbers, other scripts, and nothing at all.
TEXTS: Final = (
    "an example",
    "What's THIS – a pear, or a hammer?",
    "play some jazz at 7:30 on Monday, please",
    "Die Straße nach Zürich ist naß",
    "天気はどうですか",
    "\u200binvisible\tmarks\nand   spaces ",
    "",
)

# Looked up by name and imported on demand: scikit-learn is slow to load. A class adds itself when it is defined, and
# what is stored must never be able to name code outside this table.
KINDS: dict[str, tuple[str, str]] = {
    "hashing_text": ("learner.features.text", "HashingTextFeaturizer"),
    "static_encoder": ("learner.features.static_encoder", "StaticEncoder"),
    "span_words": ("learner.features.span_tables", "SpanWords"),
    "sentence_encoder": ("learner.features.encoder", "SentenceEncoder"),
    "tabular": ("learner.features.tabular", "TabularFeaturizer"),
    "image": ("learner.features.image", "ImageFeaturizer"),
}
CATALOGUE = "learner.features.catalogue"


class Featurizer(ABC):
    """Map records to rows of bounded norm, each row from its own record alone.

    Nothing is fitted: every parameter is declared beforehand, so featurising costs no privacy and
    the row of one record never depends on the others.

    Attributes
    ----------
    kind : str
        Name under which the featuriser is stored; no two classes have one.
    reads : {"text", "table", "image"}
        What its records are.
    knows_words : bool
        Whether words have a meaning to it, so that the name of a class says something.
    is_quick : bool
        Whether a few thousand records are read while somebody waits.
    licence : str
        What `licences.md` says of what it needs and a release does not hold.
    norm_bound : float
        Upper bound on the L2 norm of every row, exact over the stored float32 numbers.
    """

    kind: ClassVar[str]
    reads: ClassVar[RecordKind] = "text"
    knows_words: ClassVar[bool] = False
    is_quick: ClassVar[bool] = False
    licence: ClassVar[str] = ""
    # Whether a row takes so long that it is worth its way to a cluster and back.
    worth_a_cluster: ClassVar[bool] = False
    norm_bound: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let what is stored under its kind be found; a kind that another class has stays that one's."""
        super().__init_subclass__(**kwargs)
        kind = cls.__dict__.get("kind")
        if kind is None:
            return
        place = (cls.__module__, cls.__qualname__)
        # What a release needs is asked for here, not once its training is paid for.
        if cls.reads not in get_args(RecordKind):
            raise TypeError(f"a featurizer reads one of {get_args(RecordKind)}, got {cls.reads!r}")
        if cls.reads != "text" and cls.example_records is Featurizer.example_records:
            raise TypeError(f"what reads a {cls.reads} names records by example_records, {kind!r} does not")
        if KINDS.setdefault(kind, place) != place:
            raise TypeError(f"featurizer kind {kind!r} is that of {'.'.join(KINDS[kind])}")

    @property
    @abstractmethod
    def dimension(self) -> int: ...

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Keyword arguments that rebuild the featuriser, as plain JSON values."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> "Featurizer": ...

    @abstractmethod
    def raw_rows(self, batch: Any) -> NDArray[np.float64]:
        """Return unclipped rows, shape (n, dimension)."""

    def example_records(self) -> list[Any]:
        return list(TEXTS)

    def attachments(self) -> dict[str, bytes]:
        return {}

    @property
    def version(self) -> str:
        """Name and digest of all parameters; equal versions give equal features."""
        return f"{self.kind}-{hashlib.sha256(self.to_json().encode()).hexdigest()[:16]}"

    def transform(self, batch: Any) -> NDArray[np.float32]:
        """Return clipped rows, shape (n, dimension), each of L2 norm at most `norm_bound`."""
        return clip_rows(self.raw_rows(batch), norm_bound=self.norm_bound)

    def to_json(self) -> str:
        body = {"kind": self.kind, "parameters": self.parameters()}
        return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Featurizer) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


class TextFeaturizer(Featurizer):
    """Reads texts in a normal form, scaled to the norm bound; texts that the gate counts together share features."""

    n_features: int
    normalizer: Normalizer

    @property
    def dimension(self) -> int:
        return self.n_features

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        return cls(**parameters)

    def attachments(self) -> dict[str, bytes]:
        return word_lists(self.normalizer)

    def raw_rows(self, batch: Sequence[str | None] | pa.Array) -> NDArray[np.float64]:
        texts = batch if isinstance(batch, pa.Array) else pa.array(batch, pa.large_string())
        if len(texts) == 0:
            return np.empty((0, self.n_features))
        rows = self.normal_rows(normalize_texts(texts.fill_null(""), self.normalizer))
        return scaled_to(rows, self.norm_bound)

    @abstractmethod
    def normal_rows(self, texts: pa.Array) -> NDArray[np.float64]:
        """Return unscaled rows for texts in their normal form, at least one, shape (n, n_features)."""


def flat_words(texts: pa.Array) -> list[bytes]:
    r"""Return the words of normal texts one after the other, each text ended by ``b"\0"``: see `dpal.features`."""
    return " \0 ".join([*texts.to_pylist(), ""]).encode().split()


def wanted_digest(encoder: str, *, found: str, wanted: str | None) -> str:
    """Return the digest of an encoder's weights, `EncoderMissing` where it is not the one that is wanted."""
    if wanted not in (None, found):
        raise EncoderMissing(
            f"The installed weights of {encoder} have the digest {found[:16]}, not {str(wanted)[:16]}."
        )
    return found


def featurizer_class(kind: object) -> type[Featurizer]:
    """Return the class that is stored under a kind."""
    if isinstance(kind, str) and kind not in KINDS:
        # Those of choices add themselves once their modules are there.
        import_module(CATALOGUE)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"featurizer kind must be one of {sorted(KINDS)}, got {kind!r}")
    module, name = KINDS[kind]
    found: type[Featurizer] = getattr(import_module(module), name)
    return found


def featurizer_from_json(text: str) -> Featurizer:
    """Rebuild a featuriser from `Featurizer.to_json`; `ValueError` if kind or parameters are unknown."""
    body = json.loads(text)
    kind = body.get("kind") if isinstance(body, dict) else None
    found = featurizer_class(kind)
    try:
        return found.from_parameters(body["parameters"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"parameters do not describe a {kind} featurizer: {error}") from error
