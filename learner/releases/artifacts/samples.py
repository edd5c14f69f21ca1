"""samples.json: records that everybody may see and what a release says of them, for whoever loads it to compare."""

from typing import Any

import numpy as np

from learner.features.base import Featurizer
from learner.linear_model import LinearModel

SCHEMA = "dpal-samples/1"


def samples_document(model: LinearModel, featurizer: Featurizer) -> dict[str, Any]:
    """Return the content of samples.json: what follows from the other files, and no record of a project."""
    records = featurizer.example_records()
    is_image = featurizer.reads == "image"
    values = model.decision_function(featurizer.transform(np.array(records, dtype=np.uint8) if is_image else records))
    return {
        "schema": SCHEMA,
        "records": records,
        "labels": model.named(values),
        "probabilities": model.probabilities(values).tolist(),
    }
