"""What a simulation compares with: logistic regression on the same rows and labels, without noise, tuned on them."""

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from privacy.arrays import Array

# Strengths among which the baseline chooses, on its own labels.
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# So many labels settle a strength; more only take longer.
MOST_TUNED = 3_000

AnswerArray = NDArray[np.int64]


def strength_of(rows: Array, labels: AnswerArray) -> float:
    """Return the strength that folds of the labels find best, a middling one where there are too few for folds.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Labelled rows; `MOST_TUNED` and a few are enough.
    labels : ndarray of int, shape (n,)
        Their classes.
    """
    if len(labels) < 10 or np.bincount(labels)[np.unique(labels)].min() < 2:
        return 10.0
    least = int(np.bincount(labels)[np.unique(labels)].min())
    folds = StratifiedKFold(3 if least >= 3 else 2, shuffle=True, random_state=0)
    found = GridSearchCV(LogisticRegression(max_iter=300), {"C": STRENGTHS}, cv=folds, refit=False)
    return float(found.fit(rows, labels).best_params_["C"])


def clear_answers(rows: Array, labels: AnswerArray, test: Array, strength: float) -> AnswerArray:
    """Return what the model without noise says of `test`, shape (n_test,); the one class there is, where there is one.

    Parameters
    ----------
    rows, labels : ndarrays of shape (n, d) and (n,)
        What was labelled, possibly nothing.
    test : ndarray of shape (n_test, d)
        Rows held out.
    strength : float
        Inverse weight of the penalty, > 0.
    """
    if len(np.unique(labels)) < 2:
        return np.full(len(test), labels[0] if len(labels) else 0, dtype=np.int64)
    fitted = LogisticRegression(C=strength, max_iter=300).fit(rows, labels)
    return np.asarray(fitted.predict(test), dtype=np.int64)
