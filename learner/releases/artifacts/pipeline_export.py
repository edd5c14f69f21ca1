"""pipeline.skops: a scikit-learn pipeline from raw records, its featuriser being a class of `dpal-client`.

What a text becomes is no composition of standard transformers (the rules fold case and compatibility forms), so the
first step is `dpal.pipeline.Features`; a reader has to name it as trusted, and nothing else.
"""

import zipfile
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import Pipeline

# Tables are found by their digest; texts travel inside.
TEXT_ENDINGS = (".json",)


class Features(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The attributes of `dpal.pipeline.Features`, to be written."""

    def __init__(self, described: str = "{}", attached: dict[str, str] | None = None) -> None:
        self.described = described
        self.attached = attached

    def fit(self, records: Any, y: Any = None) -> "Features":
        """Learn nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


def pipeline_bytes(classifier: ClassifierMixin, *, described: bytes, attachments: dict[str, bytes]) -> bytes:
    """Return the pipeline as a skops file whose first step is the client's class.

    Parameters
    ----------
    classifier : ClassifierMixin
        What `learner.releases.artifacts.files.sklearn_estimator` makes of the weights.
    described : bytes
        The content of features.json.
    attachments : dict of str to bytes
        The featuriser's other files; those that are no texts are named by digest in `described`.
    """
    import skops.io  # noqa: PLC0415  # slow import

    texts = {name: body.decode() for name, body in sorted(attachments.items()) if name.endswith(TEXT_ENDINGS)}
    steps = [("features", Features(described.decode(), texts)), ("classifier", classifier)]
    return skops.io.dumps(Pipeline(steps), compression=zipfile.ZIP_STORED)  # type: ignore[no-any-return]
