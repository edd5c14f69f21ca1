"""A released model: what it predicts from raw records, and what it promises."""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpal.errors import DpalError, NotFitting, NotGenuine, install
from dpal.features import read_featurizer
from dpal.features.base import Rows
from dpal.files import sha256_of, write_whole
from dpal.guarantee import Guarantee
from dpal.settings import stored_file
from dpal.spans.model import SpanModel

SCHEMA = "dpal-linear-model/1"
TOLERANCE = 1e-6
KEPT_BY_DIGEST = frozenset({"encoder.npz", "encoder.directions.npz"})


class Model:
    """A released model whose files were verified; predicts as a scikit-learn classifier does.

    Parameters
    ----------
    project : str
    version : int
    files : mapping of str to Path
        The verified files of the release.

    Attributes
    ----------
    project, version, files
        As given.
    classes : tuple of str
        Names of the classes, in the order of the columns of `predict_proba`.
    guarantee : Guarantee
        Limit, spending, unit and adversary of each account.
    card : str
        The model card, Markdown.
    records : {"texts", "rows", "images"}
        What it predicts from.
    names_sets : bool
        Whether a record may have several classes, or none: then it predicts tuples of names.
    finds_spans : bool
        Whether it finds spans: then classes are their types, and it predicts tuples of `FoundSpan`.
    """

    def __init__(self, project: str, version: int, files: Mapping[str, Path]) -> None:
        self.project = project
        self.version = version
        self.files = dict(files)
        weights = _json(files["weights.json"])
        if weights.get("schema") != SCHEMA:
            raise NotGenuine(
                "This release is of a form that this version of dpal-client does not know: use a newer one."
            )
        self.classes: tuple[str, ...] = tuple(weights["classes"])
        self._coef: Rows = np.array(weights["coef"], dtype=np.float64).reshape(-1, weights["dimension"])
        self._intercept: Rows = np.array(weights["intercept"], dtype=np.float64)
        self._is_softmax = weights["multiclass"] == "softmax"
        self._names_sets: bool = weights["multiclass"] == "independent"
        is_of_spans = weights["multiclass"] == "spans"
        self._spans = SpanModel.of_release(self.classes, self._coef, self.files) if is_of_spans else None
        self._featurizer = read_featurizer(files)
        self.guarantee = Guarantee.from_document(_json(files["privacy.json"]))
        self.card = files["card.md"].read_text(encoding="utf-8")

    @property
    def records(self) -> str:
        """Kind of its input: texts, rows or images."""
        return self._featurizer.records

    @property
    def numbers(self) -> Set[str]:
        """Columns of its rows that hold numbers."""
        return self._featurizer.numbers

    @property
    def names_sets(self) -> bool:
        """True if a record may have several classes, or none."""
        return self._names_sets

    @property
    def finds_spans(self) -> bool:
        """True if it finds spans in texts."""
        return self._spans is not None

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The classes as scikit-learn names them."""
        return np.array(self.classes)

    def predict(self, records: Any) -> NDArray[np.str_] | NDArray[np.object_]:
        """Return the likeliest class of each record, shape (n,).

        Where `names_sets`, a tuple of the classes that are likelier than not; where `finds_spans`, a tuple of spans
        with their scores.

        Parameters
        ----------
        records : sequence of str, or sequence of mapping, data frame or mapping of columns, or ndarray of uint8
            Texts, rows of the declared columns, or images of shape (n, height, width), as the project holds.
        """
        return self.predict_both(records)[0]

    def predict_both(self, records: Any) -> tuple[NDArray[np.str_] | NDArray[np.object_], Rows]:
        """Return what `predict` and `predict_proba` return, computed in one pass."""
        if self._spans is not None:
            return self._found_spans(self._spans, records)
        shares, leaders = [np.empty((0, len(self.classes)))], [np.empty(0, dtype=np.intp)]
        for values in self._values(records):
            shares.append(self._probabilities(values))
            leaders.append(_leaders(values))
        found = np.concatenate(shares)
        if self._names_sets:
            return self._sets(found, np.full(len(self.classes), 0.5)), found
        named: NDArray[np.str_] = self.classes_[np.concatenate(leaders)]
        return named, found

    def predict_proba(self, records: Any) -> Rows:
        """Return the probability of each class for each record, shape (n, classes); records as in `predict`.

        Where `names_sets` each probability stands for itself, and they do not add up to one; where `finds_spans` it is
        that of the surest span of a type.
        """
        return self.predict_both(records)[1]

    def predict_sure(
        self, records: Any, precision: float, *, shares: Rows | None = None
    ) -> NDArray[np.str_] | NDArray[np.object_]:
        """Return the likeliest class where the model is sure enough of it, and an empty text elsewhere, shape (n,).

        Where `names_sets`, a tuple of all classes it is sure enough of.

        How sure is enough for this precision of a class was found on the public test sets there were at the release; a
        class that never reached it is never named. Records as in `predict`; `shares` are their probabilities, if
        computed before.
        """
        if self._spans is not None:
            raise NotFitting("A release of spans has no thresholds: choose by the scores of its spans.")
        thresholds = _json(self.files["thresholds.json"]) if "thresholds.json" in self.files else {"wanted": []}
        places = [place for place, wanted in enumerate(thresholds["wanted"]) if wanted >= precision]
        if not places or not thresholds["examples"]:
            known = (
                ", ".join(map(str, thresholds["wanted"]))
                if thresholds.get("examples")
                else "none, for want of public test sets"
            )
            raise NotFitting(f"This release has thresholds for other precisions: {known}.")
        rows = [thresholds["classes"][name][places[0]] for name in self.classes]
        least = np.array([np.inf if row is None else row["threshold"] for row in rows])
        shares = self.predict_proba(records) if shares is None else shares
        if self._names_sets:
            return self._sets(shares, least - TOLERANCE)
        leaders = shares.argmax(axis=1)
        is_sure = shares.max(axis=1, initial=0.0) >= least[leaders] - TOLERANCE
        named: NDArray[np.str_] = np.where(is_sure, self.classes_[leaders], "")
        return named

    def abstain(
        self, records: Any, precision: float = 0.95, *, shares: Rows | None = None
    ) -> NDArray[np.str_] | NDArray[np.object_]:
        """Return the likeliest class where the model is sure enough, and an empty text elsewhere, shape (n,).

        How sure was chosen with noise on a secret sample of the pool, so that at least this share of all named classes
        is right. Records as in `predict`; `shares` are their probabilities, if computed before.
        """
        found = _json(self.files["thresholds.json"]).get("abstain", []) if "thresholds.json" in self.files else []
        rows = [row for row in found if row["precision"] >= precision and row["threshold"] is not None]
        if not rows:
            reached = [str(row["precision"]) for row in found if row["threshold"] is not None]
            raise NotFitting(
                f"This release has a threshold for other shares of right answers: {', '.join(reached)}."
                if reached
                else "This release has no threshold to abstain by; see `dpal ask-shares --by confidence`."
            )
        shares = self.predict_proba(records) if shares is None else shares
        is_sure = shares.max(axis=1, initial=0.0) >= min(row["threshold"] for row in rows) - TOLERANCE
        named: NDArray[np.str_] = np.where(is_sure, self.classes_[shares.argmax(axis=1)], "")
        return named

    def pipeline(self) -> Any:
        """Return the release as a pipeline of scikit-learn from raw records; needs the extra `sklearn`."""
        if self._spans is not None:
            raise NotFitting("Models of spans are no pipelines of scikit-learn: use predict.")
        try:
            import skops.io as skops  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise DpalError(f"A pipeline needs other packages: {install('sklearn')}") from error
        for name in KEPT_BY_DIGEST & self.files.keys():
            # It finds its tables there, wherever this folder is later.
            kept = stored_file(sha256_of(self.files[name]))
            if not kept.exists():
                write_whole(kept, self.files[name].read_bytes())
        return skops.load(self.files["pipeline.skops"], trusted=["dpal.pipeline.Features"])

    def decision_function(self, records: Any) -> Rows:
        """Return decision values, shape (n,) for two classes and (n, classes) for more; records as in `predict`."""
        if self._spans is not None:
            raise NotFitting("Spans have no decision values: use predict.")
        values = np.concatenate([np.empty((0, len(self._coef))), *self._values(records)])
        return values[:, 0] if len(self._coef) == 1 else values

    def check(self) -> None:
        """Predict the samples of the release; `NotGenuine` if anything differs from what the site wrote."""
        samples = _json(self.files["samples.json"])
        records = np.array(samples["records"], dtype=np.uint8) if self.records == "images" else samples["records"]
        found = self.predict_proba(records)
        if np.abs(found - np.array(samples["probabilities"])).max() > self._featurizer.tolerance:
            raise NotGenuine("The model predicts something else here than on the site that released it: do not use it.")

    def _found_spans(self, model: SpanModel, records: Any) -> tuple[NDArray[np.object_], Rows]:
        found = model.predict([text or "" for text in self._listed(records)])
        named = np.empty(len(found), dtype=np.object_)
        named[:] = found
        return named, model.best_scores(found)

    def _values(self, records: Any) -> Iterator[Rows]:
        for rows in self._featurizer.blocks(self._listed(records)):
            yield rows @ self._coef.T + self._intercept

    def _listed(self, records: Any) -> Any:
        if isinstance(records, (str, bytes)) or not hasattr(records, "__len__"):
            raise NotFitting(f"This model reads several {self.records} at a time: put a single one into a list.")
        if hasattr(records, "to_pylist") or (hasattr(records, "tolist") and self.records == "texts"):
            records = records.to_pylist() if hasattr(records, "to_pylist") else records.tolist()
        return records

    def _probabilities(self, values: Rows) -> Rows:
        if len(self._coef) == 1 or self._names_sets:
            # Logistic values by their logarithms, which do not overflow.
            signs = -values if self._names_sets else np.concatenate([values, -values], axis=1)
            both: Rows = np.exp(-np.logaddexp(0.0, signs))
            return both
        logs = values if self._is_softmax else -np.logaddexp(0.0, -values)
        shares: Rows = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _sets(self, shares: Rows, least: Rows) -> NDArray[np.object_]:
        """Return the names of the classes that reach what is asked of them, a tuple for each record."""
        found = np.empty(len(shares), dtype=np.object_)
        for place, row in enumerate(shares > least):
            found[place] = tuple(name for name, named in zip(self.classes, row, strict=True) if named)
        return found

    def __repr__(self) -> str:
        limits = ", ".join(str(account.limit) for account in self.guarantee)
        return f"<dpal.Model {self.project} version {self.version}: {len(self.classes)} classes, guarantee {limits}>"


def _leaders(values: Rows) -> NDArray[np.intp]:
    if values.shape[1] == 1:
        return (values[:, 0] > 0).astype(np.intp)
    leaders: NDArray[np.intp] = values.argmax(axis=1)
    return leaders


def _json(path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return body
