"""Features as a step of an engine: batches of texts, or of tables as JSON, in; batches of vectors out."""

import json
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from learner.features.base import Featurizer, featurizer_from_json
from privacy.engines.batches import BatchStep


def features_step(featurizer: Featurizer) -> BatchStep:
    return BatchStep(f"{__name__}:{vectors_of.__name__}", featurizer.to_json(), needs="dpal")


def values_batch(values: Iterable[str]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.large_string())], names=["value"])


def vectors_of(given: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    featurizer = featurizer_from_json(given)
    reads_tables = featurizer.reads == "table"

    def made(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(0)
        rows = featurizer.transform([json.loads(each) for each in values.to_pylist()] if reads_tables else values)
        numbers = pa.array(np.ascontiguousarray(rows).reshape(-1))
        return pa.record_batch([pa.FixedSizeListArray.from_arrays(numbers, featurizer.dimension)], names=["vector"])

    return made


def vectors_in(batch: pa.RecordBatch, dimension: int) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = batch.column(0).flatten().to_numpy().reshape(-1, dimension)
    return numbers
