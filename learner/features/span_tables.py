"""Features of spans from the tables that ship with the program."""

import hashlib
from functools import lru_cache
from typing import Any

from dpal.spans.features import SpanFeatures, Whitening
from dpal.spans.model import WHITENING as ATTACHED
from learner.features.base import wanted_digest
from learner.features.static_encoder import WEIGHTS, StaticEncoder, read_table

WHITENING = WEIGHTS / "span-whitening.npz"


@lru_cache(maxsize=1)
def span_features() -> SpanFeatures:
    return SpanFeatures(read_table("minilm-static"), Whitening.read(WHITENING))


class SpanWords(StaticEncoder):
    """Vectors of single words for spans; a whole text has the row of a `StaticEncoder`.

    Parameters
    ----------
    whitening_sha256 : str, optional
        Digest of the directions that words are turned into, checked at once; by default that of the shipped ones.
    options
        As of a `StaticEncoder`.
    """

    kind = "span_words"

    def __init__(self, whitening_sha256: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        found = hashlib.sha256(WHITENING.read_bytes()).hexdigest()
        self.whitening_sha256 = wanted_digest(ATTACHED, found=found, wanted=whitening_sha256)

    def parameters(self) -> dict[str, Any]:
        return {**super().parameters(), "whitening_sha256": self.whitening_sha256}

    def attachments(self) -> dict[str, bytes]:
        return {**super().attachments(), ATTACHED: WHITENING.read_bytes()}
