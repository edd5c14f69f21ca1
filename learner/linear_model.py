"""The linear model that is released, scored with and written to files: plain numbers and class names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax

Multiclass = Literal["one_vs_rest", "softmax", "independent", "spans"]
SCHEMA = "dpal-linear-model/1"


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Weights, intercepts and class names.

    Parameters
    ----------
    coef : ndarray of float64, shape (1, d) for two classes, (n_classes, d) for more and where classes are independent
        Weights; with two classes a positive decision value speaks for the second. Of spans, shape (K, d + K), those of
        a conditional random field over tokens, K the number of types and one.
    intercept : ndarray of float64, shape (1,) or (n_classes,)
        Added to the product; a regularised constant column is folded into it.
    classes : tuple of str
        Distinct names, at least two.
    multiclass : {"one_vs_rest", "softmax", "independent", "spans"}
        How more than two decision values become probabilities: logistic ones divided by their sum, or softmax; or
        logistic ones as they are, where a record may have several classes or none.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: tuple[str, ...]
    multiclass: Multiclass = "one_vs_rest"

    def __post_init__(self) -> None:
        coef, intercept = np.array(self.coef, dtype=np.float64), np.array(self.intercept, dtype=np.float64)
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.classes) < 2 - self.names_spans or len(set(self.classes)) != len(self.classes):
            raise ValueError(f"classes must be distinct, at least two, got {len(self.classes)}")
        outputs = 1 if len(self.classes) == 2 and not self.names_sets else len(self.classes)
        if self.names_spans:
            outputs = len(self.classes) + 1
        if coef.ndim != 2 or len(coef) != outputs or intercept.shape != (outputs,):
            raise ValueError(
                f"{len(self.classes)} classes need {outputs} rows of weights and intercepts, "
                f"got shapes {coef.shape} and {intercept.shape}"
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("weights must be finite")
        if self.multiclass not in get_args(Multiclass):
            raise ValueError(f"multiclass must be one of {get_args(Multiclass)}, got {self.multiclass!r}")

    @property
    def names_sets(self) -> bool:
        return self.multiclass == "independent"

    @property
    def names_spans(self) -> bool:
        return self.multiclass == "spans"

    @property
    def dimension(self) -> int:
        return int(self.coef.shape[1])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return decision values, shape (n,) for two classes and (n, n_classes) for more."""
        values: NDArray[np.float64] = np.asarray(X, dtype=np.float64) @ self.coef.T + self.intercept
        return values[:, 0] if len(self.coef) == 1 else values

    def probabilities(self, decision_values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return class probabilities for decision values, shape (n, n_classes); of sets each by itself."""
        wide = decision_values.astype(np.float64)
        shares: NDArray[np.float64]
        if wide.ndim == 1:
            shares = np.stack([expit(-wide), expit(wide)], axis=1)
        elif self.multiclass == "softmax":
            shares = softmax(wide, axis=1)
        elif self.names_sets:
            shares = expit(wide)
        else:
            # Dividing by the largest first keeps the sum from vanishing where every class is refused.
            logs = -np.logaddexp(0.0, -wide)
            shares = softmax(logs, axis=1)
        return shares

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities, shape (n, n_classes), columns as in `classes`."""
        return self.probabilities(self.decision_function(X))

    def predict(self, X: ArrayLike) -> list[str] | list[list[str]]:
        """Return the name of the leading class of each row; of a model of sets all that are likelier than not."""
        return self.named(self.decision_function(X))

    def named(self, decision_values: NDArray[np.floating]) -> list[str] | list[list[str]]:
        """Return what `predict` does, for decision values."""
        if self.names_sets:
            return [[self.classes[place] for place in np.flatnonzero(row)] for row in self.members(decision_values)]
        return [self.classes[leader] for leader in self.leaders(decision_values)]

    def members(self, decision_values: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which classes are likelier than not, shape (n, n_classes); of models of sets alone."""
        if not self.names_sets:
            raise ValueError("only a model of sets names several classes")
        return decision_values > 0

    def leaders(self, decision_values: NDArray[np.floating]) -> NDArray[np.intp]:
        if decision_values.ndim == 1:
            return (decision_values > 0).astype(np.intp)
        leaders: NDArray[np.intp] = decision_values.argmax(axis=1)
        return leaders

    def renamed(self, names: Mapping[str, str]) -> "LinearModel":
        """Return the model with other names for some classes."""
        return replace(self, classes=tuple(names.get(name, name) for name in self.classes))

    def knowing(self, classes: Sequence[str]) -> "LinearModel":
        """Return the model of other classes: without those that are not among them, beside further ones behind.

        Of further ones it says nothing: their weights are zero. `classes` must begin with those of the model that are
        left, in its order.
        """
        names = tuple(classes)
        left = [place for place, name in enumerate(self.classes) if name in names]
        if names[: len(left)] != tuple(self.classes[place] for place in left):
            raise ValueError(f"further classes come behind the {len(left)} of the model")
        if names == self.classes:
            return self
        if self.names_spans:
            raise ValueError("a model of spans knows its own types alone")
        coef, intercept = self.coef, self.intercept
        # One decision value speaks for the second class and against the first; under softmax each has half of it.
        half = 0.5 if self.multiclass == "softmax" else 1.0
        if len(coef) == 1:
            coef = np.vstack([-half * coef, half * coef])
            intercept = np.concatenate([-half * intercept, half * intercept])
        further = len(names) - len(left)
        coef, intercept = np.pad(coef[left], ((0, further), (0, 0))), np.pad(intercept[left], (0, further))
        if len(names) == 2 and not self.names_sets:
            coef, intercept = np.diff(coef, axis=0) / (2 * half), np.diff(intercept) / (2 * half)
        return LinearModel(coef, intercept, names, self.multiclass)

    def to_json(self) -> dict[str, Any]:
        """Return the content of weights.json; Python's shortest float notation keeps every bit."""
        return {
            "schema": SCHEMA,
            "classes": list(self.classes),
            "multiclass": self.multiclass,
            "dimension": self.dimension,
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Build the model that weights.json describes; `ValueError` for an unknown schema or incomplete content."""
        if not isinstance(body, dict) or body.get("schema") != SCHEMA:
            raise ValueError(f"weights must follow schema {SCHEMA}")
        try:
            coef = np.array(body["coef"], dtype=np.float64).reshape(-1, body["dimension"])
            return cls(coef, np.array(body["intercept"]), tuple(body["classes"]), body["multiclass"])
        except (KeyError, TypeError) as error:
            raise ValueError("weights are incomplete") from error
