"""The first step of a release's pipeline.skops: raw records to features, as a transformer of scikit-learn."""

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from dpal.errors import NotCached
from dpal.features import KINDS
from dpal.features.base import Featurizer, Rows
from dpal.files import sha256_of
from dpal.settings import stored_file

# Parameters that name a file by its digest, and what the file is called in a release.
TABLES = {"table_sha256": "encoder.npz", "directions_sha256": "encoder.directions.npz"}


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    def __init__(self, described: str = "{}", attached: dict[str, str] | None = None) -> None:
        self.described = described
        self.attached = attached

    def fit(self, records: Any, y: Any = None) -> "Features":
        return self

    def transform(self, records: Any) -> Rows:
        made = _featurizer(self.described, tuple(sorted((self.attached or {}).items())))
        return made.transform(records).astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _table(name: str, digest: str) -> Path:
    """Return a file of the release from the cache, or from the working directory."""
    for found in (stored_file(digest), Path(name)):
        if found.exists() and sha256_of(found) == digest:
            return found
    raise NotCached(f"This pipeline needs {name} of its release: put it into the working directory.")


@lru_cache(maxsize=4)
def _featurizer(described: str, attached: tuple[tuple[str, str], ...]) -> Featurizer:
    body = json.loads(described)
    parameters = body["parameters"]
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, content in attached:
            files[name] = Path(folder) / name
            files[name].write_bytes(content.encode())
        for named, name in TABLES.items():
            if named in parameters:
                files[name] = _table(name, parameters[named])
        return KINDS[body["kind"]].from_release(parameters, files)
