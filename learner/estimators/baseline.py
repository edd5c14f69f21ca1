"""Logistic regression without privacy, to hold the private one against."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from learner.estimators.convex import minimise
from learner.estimators.linear import LinearLogisticClassifier, largest_norm


@dataclass(eq=False, repr=False)
class LogisticRegressionBaseline(LinearLogisticClassifier):
    """Minimise the objective of `PrivateLogisticRegression` with no noise: for comparison, never for release."""

    releasable: ClassVar[bool] = False

    regularization: float = 1.0
    _: KW_ONLY
    classes: Any = None
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    gradient_tolerance: float = 1e-6

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows `X`, shape (n_samples, n_features), and labels `y`, or raise `CertificateMissed`."""
        self._check_positive("regularization", "intercept_scaling", "gradient_tolerance")
        rows, labels = self._validated(X, y)
        classes = self._learned_classes(labels) if self.classes is None else self._declared_classes()
        row_norm = math.hypot(largest_norm(rows), self._constant)
        tilt = np.zeros(rows.shape[1] + bool(self.fit_intercept))
        sides = self._sides(labels, classes)
        objectives = [
            self._objective(rows, signs, ridge=self.regularization, tilt=tilt, row_norm=row_norm) for signs in sides
        ]
        self._store([minimise(objective, tolerance=self.gradient_tolerance) for objective in objectives])
        self.classes_ = classes
        return self
