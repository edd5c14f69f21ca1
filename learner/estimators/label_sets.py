"""Several classes a record: one logistic model for each class, all of them from one noisy release of sums."""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import validate_data

from annotation.choices.label_types.base import Teaching
from annotation.choices.label_types.several import ChooseSeveral
from dpal.recompute.label_sets import DIRECTIONS, best_sets
from dpal.recompute.sums import NoisySums
from dpal.recompute.transcript import Weights
from learner.estimators.choice import Shape, SumsChoice
from learner.estimators.sums import PrivateSums
from learner.linear_model import Multiclass
from privacy.accounting import checks
from privacy.accounting.sums import SumsEvent, charged_delta, sums_event, sums_mu
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(eq=False, repr=False)
class PrivateLabelSets(PrivateSums):
    r"""Release the noisy sums of the rows of each class and of all rows, and make a logistic model for each class.

    A record has at most `labels_per_record` = r classes, so it moves r class sums and the sum of all rows, each by its
    row: an L2 sensitivity of :math:`M \sqrt{r + 1}` whatever the number of classes. The sum of all rows is what tells
    how many rows lack a class, and where they lie.

    Parameters
    ----------
    labels_per_record : int
        Most classes of a record, >= 1 and at most the classes there are; declared beforehand, and records with more
        are refused.
    model : {"auto", "prototypes", "discriminants"}
        "auto" takes the one along whose directions the noisy sums lie furthest apart.
    epsilon, delta, classes, moment_share, norm_bound, intercept_scaling, adjacency, earlier, own_weight, prior, \
random_state
        As in `PrivateSums`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of each class's own model, also where there are two.
    intercept_ : ndarray of shape (n_classes,)
    classes_, sums_, model_, privacy_event_, simulated_
        As in `PrivateSums`; `sums_` has one row more than there are classes.
    """

    multiclass: ClassVar[Multiclass] = "independent"
    program = "label_sets"

    _: KW_ONLY
    labels_per_record: int = 1

    def predict(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return which classes are likelier than not, shape (n, n_classes)."""
        return self.decision_function(X) > 0

    def with_further_classes(self, class_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return released sums with zeros for further classes; the sum of all rows stays the last."""
        return np.vstack([super().with_further_classes(class_sums[:-1]), class_sums[-1:]])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class by itself, shape (n, n_classes); rows do not add up to one."""
        return expit(self.decision_function(X))

    def _validated(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool = True
    ) -> tuple[NDArray[np.floating], NDArray[Any]]:
        members = np.asarray(y)
        if members.dtype != np.bool_ or members.ndim != 2:
            raise ValueError(f"y must say for each row and class whether it has it, got shape {members.shape}")
        rows: NDArray[np.floating] = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=0, reset=reset
        )
        if len(rows) != len(members):
            raise ValueError(f"X and y must be of one length, got {len(rows)} and {len(members)}")
        return rows, members

    def _learned_classes(self, labels: NDArray[Any]) -> NDArray[Any]:
        return self._distinct(range(labels.shape[1]))

    def _members(self, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which of the released class sums each row enters; all enter the last, which is of all rows."""
        if labels.shape[1] != len(classes):
            raise ValueError(f"y must have a column for each of {len(classes)} classes, got {labels.shape[1]}")
        if len(labels) and (most := int(labels.sum(axis=1).max())) > self.labels_per_record:
            raise ValueError(f"a record has at most {self.labels_per_record} labels, got {most}")
        return np.hstack([labels, np.ones((len(labels), 1), dtype=np.bool_)])

    @staticmethod
    def _make_model(public: dict[str, Any], sums: NoisySums, seed: NDArray[np.float64]) -> tuple[str, Weights]:
        return best_sets(public, sums, seed)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.one_of("model", self.model, ("auto", *DIRECTIONS))

    def _event(self, n_features: int, n_classes: int) -> SumsEvent:
        self._check_parameters()
        if not 1 <= self.labels_per_record <= n_classes:
            raise ValueError(f"labels_per_record must lie in [1, {n_classes}], got {self.labels_per_record}")
        return sums_event(
            sums_mu(self.epsilon, self.delta),
            dimension=n_features + 1,
            # The sum of all rows is one more, which every record enters.
            n_classes=n_classes + 1,
            labels_per_record=self.labels_per_record + 1,
            norm_bound=self._row_norm,
            moment_share=self.moment_share,
            delta=charged_delta(self.delta),
            adjacency=self.adjacency,
        )


@dataclass(frozen=True)
class LabelSets(SumsChoice):
    """Models of several classes a record, as projects choose them."""

    name: ClassVar[str] = "label_sets"
    label: ClassVar[str] = _("several classes from noisy sums, one price for any classes (ε, δ)")
    words: ClassVar[str] = _("logistic models for several classes, from noisy sums")
    learns: ClassVar[Collection[Teaching]] = (Teaching.SETS,)
    why_no_pick: ClassVar[str] = _("A release can be worse than version 0: the two are not compared before it.")
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("pool",), why_not=dict(ChooseSeveral.sound.why_not))

    def estimator(self, shape: Shape) -> PrivateLabelSets:
        return PrivateLabelSets(
            self.training_epsilon,
            labels_per_record=shape.labels_per_record,
            delta=self.training_delta,
            moment_share=self.moment_share,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )
