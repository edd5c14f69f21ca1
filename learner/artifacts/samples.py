"""samples.json: records that everybody may see and what a release says of them, for whoever loads it to compare."""

from typing import Any

import numpy as np

from learner.features.base import Featurizer
from learner.features.principal import PrincipalImageFeaturizer
from learner.linear_model import LinearModel

SCHEMA = "dpal-samples/1"
# Made up; words that models know and words they do not, marks, numbers, other scripts, and nothing at all.
TEXTS = (
    "an example",
    "What's THIS – a pear, or a hammer?",
    "play some jazz at 7:30 on Monday, please",
    "Die Straße nach Zürich ist naß",
    "天気はどうですか",
    "\u200binvisible\tmarks\nand   spaces ",
    "",
)
# Values that a table may hold where a number or a category is due, besides declared ones.
STRANGE: tuple[Any, ...] = (None, "", "not declared", "1e3", float(2**40), -7)


def sample_records(featurizer: Featurizer) -> list[Any]:
    """Return records that the featuriser reads, made from its public parameters alone; images as lists of pixels."""
    parameters = featurizer.parameters()
    if featurizer.reads == "table":
        return _rows(parameters["columns"])
    if featurizer.reads == "image":
        pixels = parameters["pixels"] if isinstance(featurizer, PrincipalImageFeaturizer) else parameters
        return list(_images(pixels["height"], pixels["width"], colour="hues" in pixels).tolist())
    return list(TEXTS)


def samples_document(model: LinearModel, featurizer: Featurizer) -> dict[str, Any]:
    """Return the content of samples.json: what follows from the other files, and no record of a project."""
    records = sample_records(featurizer)
    is_image = featurizer.reads == "image"
    values = model.decision_function(featurizer.transform(np.array(records, dtype=np.uint8) if is_image else records))
    return {
        "schema": SCHEMA,
        "records": records,
        "labels": model.named(values),
        "probabilities": model.probabilities(values).tolist(),
    }


def _rows(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that go through declared bounds and categories, then rows of what nobody declared."""
    choices: dict[str, list[Any]] = {
        column["name"]: list(column["categories"])
        if "categories" in column
        else [column["low"], column["high"], (column["low"] + column["high"]) / 2]
        for column in columns
    }
    fitting = [{name: known[place % len(known)] for name, known in choices.items()} for place in range(3)]
    return [*fitting, *(dict.fromkeys(choices, value) for value in STRANGE), {}]


def _images(height: int, width: int, *, colour: bool) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a slope and squares; in colour green falls where red rises, and blue is that of the other image."""
    rows, columns = np.indices((height, width))
    slope = (rows * width + columns) * 255 // max(1, height * width - 1)
    squares = ((rows // 2 + columns // 2) % 2) * 255
    grey = np.stack([slope, squares]).astype(np.uint8)
    return np.stack([grey, 255 - grey, grey[::-1]], axis=3) if colour else grey
