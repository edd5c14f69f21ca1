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
from dpal.settings import stored_file

# Parameters that name a file by its digest, and what the file is called in a release.
TABLES = {"table_sha256": "encoder.npz"}


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
                files[name] = stored_file(parameters[named])
                if not files[name].exists():
                    raise NotCached(f"{name} of this pipeline was never downloaded here: run dpal.load for it once.")
        return KINDS[body["kind"]].from_release(parameters, files)
