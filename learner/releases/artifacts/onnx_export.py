"""A released model as ONNX: features in, class names and probabilities out, in double precision throughout."""

import json
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from learner.linear_model import LinearModel

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin

# What onnxruntime has read since 2023; newer operators would add nothing to a linear model.
OPSET = 18
INPUT, LABEL = "features", "label"


def onnx_bytes(estimator: "ClassifierMixin", model: LinearModel, *, featurizer: str) -> bytes:
    """Return the ONNX form of a fitted scikit-learn classifier, the same bytes every time."""
    from skl2onnx import to_onnx  # noqa: PLC0415 - slow import
    from skl2onnx.common.data_types import DoubleTensorType  # noqa: PLC0415 - slow import

    metadata = {"featurizer": featurizer, "input": INPUT, "schema": "dpal-onnx/1"}
    if model.names_sets:
        metadata["classes"] = json.dumps(model.classes, ensure_ascii=False)
        # Columns have no names there, and the converter takes those of the classes for the type of the output.
        estimator = copy(estimator)
        estimator.classes_ = np.arange(len(model.classes))
    graph = to_onnx(
        estimator,
        initial_types=[(INPUT, DoubleTensorType([None, model.dimension]))],
        options={"zipmap": False},
        # The classifier operator knows single precision alone.
        black_op={"LinearClassifier"},
        target_opset=OPSET,
    )
    graph.doc_string = ""
    # Kept in a set on the way, in an order of its own in every process.
    versions = sorted((each.domain, each.version) for each in graph.opset_import)
    del graph.opset_import[:]
    for domain, number in versions:
        graph.opset_import.add(domain=domain, version=number)
    for key, value in sorted(metadata.items()):
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    content: bytes = graph.SerializeToString(deterministic=True)
    return content
