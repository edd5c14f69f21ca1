"""Records to vectors, exactly as the site makes them, by what a release says of it and nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpal.errors import NotGenuine
from dpal.features.base import Featurizer
from dpal.features.hashing import HashedWords
from dpal.features.images import Images
from dpal.features.sentences import Sentences
from dpal.features.table import Table
from dpal.features.word_vectors import WordVectors

KINDS: dict[str, type[Featurizer]] = {
    "hashing_text": HashedWords,
    "static_encoder": WordVectors,
    "span_words": WordVectors,
    "sentence_encoder": Sentences,
    "tabular": Table,
    "image": Images,
}


def read_featurizer(files: Mapping[str, Path]) -> Featurizer:
    """Build what features.json describes; `files` holds the verified files of a release by name."""
    described: dict[str, Any] = json.loads(files["features.json"].read_text(encoding="utf-8"))
    kind = described["kind"]
    if kind not in KINDS:
        raise NotGenuine(
            f"This release makes its features by {kind!r}, which this version of dpal-client cannot do: use a newer "
            "one, or ask the site by its route predict."
        )
    return KINDS[kind].from_release(described["parameters"], files)
