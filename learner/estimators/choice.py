"""Base of every choice of an estimator, and the protocol that trainings use."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotation.choices.label_types.learning import LearnsLabels
from annotation.choices.rules import features_of, hides_selection
from dpal.recompute.transcript import Transcript
from learner.estimators.descriptions import PublicWords
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting.answers import Loss
from privacy.accounting.event import Event
from privacy.accounting.events import AnswersEvent
from privacy.choices import Sound, parameter
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

# A constant column of 1 would make rows, and so the noise, half as long again; at 0.2 it is all but free.
INTERCEPT_SCALING: Final = 0.2
OF_POOLS: Final = {"stream": _("Not for streams: this estimator reads all labels again.")}
WITHOUT_DELTA: Final = {"crowd": _("Gaussian noise needs a delta in the account of the answers.")}
OF_TRUSTED_POOLS: Final = Sound(oracles=("trusted",), arrivals=("pool",), why_not=OF_POOLS | WITHOUT_DELTA)


class PrivateEstimator(Protocol):
    """Contract of an estimator: scikit-learn's, a price, and linear weights."""

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    on_step: Callable[[int, int], None] | None
    transcript_: Transcript

    @property
    def multiclass(self) -> Multiclass: ...

    @property
    def releasable(self) -> bool:
        """True where the noise of the fit came from a secure source, as that of a release must."""

    def event_for(self, n_features: int) -> Event: ...

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return what a first fit leans on of the words about the classes, at epsilon 0, in this estimator's scale."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...

    def set_params(self, **parameters: Any) -> Self: ...


@dataclass(frozen=True, slots=True)
class Shape:
    """Public facts an estimator must know about its rows.

    `classes` are those there can be, whether or not a label of each comes; `norm_bound` is the largest L2 norm of a
    row, `intercept_scaling` the constant column beside it; `prior` is a released model to start from. Under the
    adjacency "null" epsilon is meant for a record left out, under "replace" for one answer replaced by another.
    `answers` says how answers are randomised before anything learns from them; `open_answers` that they are declared
    not to be secret; `has_examples` that the owner wrote examples of every class.
    """

    classes: list[int]
    norm_bound: float
    intercept_scaling: float
    prior: LinearModel | None = None
    adjacency: Literal["null", "replace"] = "null"
    answers: AnswersEvent | None = None
    open_answers: bool = False
    labels_per_record: int = 1
    has_examples: bool = False


@dataclass(frozen=True)
class EstimatorChoice(LearnsLabels):
    """An estimator with its parameters as a project chooses them.

    Attributes
    ----------
    words : str
        What a model card says of it.
    loss : {"logistic", "other"}
        Which loss it has: under the logistic one, where rows are public, another label costs no more than a row left
        out (`LabelTrainingEvent`).
    picks : bool
        Whether a release that starts from a model goes no further from it than noisy counts find better.
    why_no_pick : str
        Why a release is not compared with version 0; pages and cards print it.
    leans_on_names : bool
        Whether a first fit starts from less than examples of every class.
    """

    words: ClassVar[str]
    loss: ClassVar[Loss] = "other"
    picks: ClassVar[bool] = False
    why_no_pick: ClassVar[str] = ""
    leans_on_names: ClassVar[bool] = True
    # Each training pays for itself; of a stream everything stays.
    stays: ClassVar[bool] = False

    @abstractmethod
    def estimator(self, shape: Shape) -> PrivateEstimator: ...

    def event(self, *, shape: Shape, n_features: int, **circumstances: Any) -> Event:
        return self.estimator(shape).event_for(n_features)

    @final
    def release(self, settings: Mapping[str, Any]) -> Event | None:
        """Return what one training on rows of norm one is charged; behind a gate the answers decide."""
        if settings.get("oracle") == "crowd":
            return None
        shape = Shape(
            list(range(len(settings["classes"]))),
            norm_bound=1.0,
            intercept_scaling=INTERCEPT_SCALING,
            labels_per_record=settings.get("labels_per_record") or 1,
        )
        return self.event(shape=shape, n_features=features_of(settings))


def delta_of_training() -> Any:
    """Return the one declaration of the delta of a training; whatever has Gaussian noise has it as `training_delta`."""
    return parameter(
        1e-6,
        above=0,
        below=1,
        label=_("Delta of one training"),
        charged=True,
    )


@dataclass(frozen=True)
class PricedEstimator(EstimatorChoice):
    """An estimator each of whose trainings is charged an epsilon of its own."""

    training_epsilon: float = parameter(
        1.0,
        above=0,
        label=_("Epsilon of one training"),
        help=_("Cost of one release; a secret sample lowers it, a stream pays once."),
        charged=True,
    )


@dataclass(frozen=True)
class GaussianChoice(PricedEstimator):
    """An estimator whose noise leaves a delta."""

    training_delta: float = delta_of_training()

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a release that the account cannot pay; a secret choice makes it cheaper by its rate."""
        if settings.get("oracle") == "crowd" or hides_selection(settings):
            return {}
        if self.training_delta <= settings.get("pool_delta", 1.0):
            return {}
        rule = as_message("One release costs delta {delta:g}, more than the limit.", delta=self.training_delta)
        return {"pool_delta": rule}


@dataclass(frozen=True)
class ConvexChoice(PricedEstimator):
    """An estimator that minimises a convex objective; each of more than two classes has a share of epsilon."""

    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not=OF_POOLS)

    regularization: float = parameter(
        1.0,
        above=0,
        label=_("Regularisation"),
        help=_("Public constant of the summed objective."),
    )


@dataclass(frozen=True)
class SumsChoice(GaussianChoice):
    """An estimator that is made of noisy sums."""

    moment_share: float = parameter(
        0.05,
        at_least=0,
        below=1,
        label=_("Share of the second moments"),
        help=_("Share of epsilon for second moments; 0 leaves class means only."),
    )
