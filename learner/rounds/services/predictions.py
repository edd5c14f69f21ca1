"""Trying a release: predictions from its published weights and featuriser, which are kept in the process."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotation.models import DataKind
from learner.errors import InputNotFitting, ReleaseBuried, not_released
from learner.features.base import Featurizer, featurizer_from_json
from learner.linear_model import LinearModel
from learner.models import ModelRelease, ReleaseState
from learner.releases.selectors import Served
from privacy.wording import as_message

KEPT_RELEASES = 32


@dataclass(frozen=True, slots=True)
class Predictor:
    """Weights, featuriser and declared columns of one release; none of them ever changes."""

    model: LinearModel
    featurizer: Featurizer
    columns: frozenset[str] = frozenset()

    def predict(self, batch: Sequence[Any]) -> tuple[list[str] | list[list[str]], NDArray[np.float64]]:
        """Return the predicted class of each record, or classes, and all probabilities, shape (n, n_classes)."""
        values = self.model.decision_function(self.featurizer.transform(batch))
        return self.model.named(values), self.model.probabilities(values)


def predict_records(
    *, release: Served, texts: Sequence[str] | None, rows: Sequence[dict[str, Any]] | None
) -> tuple[Predictor, list[str] | list[list[str]], NDArray[np.float64]]:
    """Predict texts, or rows of declared columns, whichever the project holds; say what predicted."""
    wanted = {DataKind.TEXT: ("texts", texts), DataKind.TABLE: ("rows", rows)}.get(DataKind(release.data_kind))
    if wanted is None:
        raise InputNotFitting("Images are not predicted over this route; load model.onnx or weights.json.")
    name, batch = wanted
    if batch is None or (texts is not None and rows is not None):
        raise InputNotFitting(as_message("This project's records are sent as {name}, and nothing else.", name=name))
    if release.state == ReleaseState.CANDIDATE:
        raise not_released(release.version, release.held_back)
    # Asked of retired ones alone: a process that served it before would go on from memory.
    if release.state == ReleaseState.RETIRED and ModelRelease.objects.filter(pk=release.pk, weights={}).exists():
        raise ReleaseBuried("This release was deleted with its project; its digests and its guarantee are left.")
    predictor = _predictor(release.pk)
    if rows is not None:
        refuse_undeclared_columns(rows, declared=predictor.columns)
    return predictor, *predictor.predict(batch)


def refuse_undeclared_columns(rows: Sequence[dict[str, Any]], *, declared: frozenset[str]) -> None:
    """Refuse rows that hold more than the declared columns, or more than one value in one."""
    if any(key not in declared for row in rows for key in row):
        raise InputNotFitting(
            as_message("The declared columns are {columns}; others were sent.", columns=", ".join(sorted(declared)))
        )
    if any(isinstance(value, list | dict) for row in rows for value in row.values()):
        raise InputNotFitting("A column holds a text, a number, true, false or null.")


@lru_cache(maxsize=KEPT_RELEASES)
def _predictor(release_id: int) -> Predictor:
    weights, features = ModelRelease.objects.values_list("weights", "features").get(pk=release_id)
    columns = frozenset(column["name"] for column in features["parameters"].get("columns", ()))
    return Predictor(LinearModel.from_json(weights), featurizer_from_json(json.dumps(features)), columns)
