"""Estimators by the names under which projects store them; none of them trains without noise."""

from typing import Any

from annotation.choices.catalogue import CATALOGUE
from learner.estimators.label_sets import LabelSets
from learner.estimators.logistic import Logistic, LogisticOutput
from learner.estimators.planned import PlannedEstimator
from learner.estimators.randomized_answers import KnownChannel
from learner.estimators.running_sums import OfRunningSums
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.estimators.span_crf import SpanCrf
from learner.estimators.sums import Sums
from privacy.choices import Choice, Kind

# What projects may choose, in the order in which forms list it; a new estimator joins by one line.
CHOICES: tuple[type[Choice], ...] = (
    Logistic,
    LogisticOutput,
    PlannedEstimator,
    SoftmaxSteps,
    Sums,
    LabelSets,
    OfRunningSums,
    KnownChannel,
    SpanCrf,
)


def words_for(name: str) -> str:
    """Return what a model card says of an estimator."""
    words: str = _found(name).words
    return words


def why_not_compared(name: str) -> str:
    """Return why releases of an estimator are not compared with version 0; empty where they are."""
    why: str = _found(name).why_no_pick
    return why


def _found(name: str) -> Any:
    found = next((choice for choice in CHOICES if choice.name == name), CATALOGUE.find(Kind.ESTIMATOR, name))
    if found is None:
        raise ValueError(f"no estimator is called {name!r}")
    return found
