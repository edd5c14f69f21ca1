"""The estimator that public trials found best for the number of classes."""

from dataclasses import dataclass
from typing import ClassVar

from learner.estimators.choice import OF_TRUSTED_POOLS, EstimatorChoice, GaussianChoice, PrivateEstimator, Shape
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.estimators.sums import Sums
from privacy.choices import Sound
from privacy.wording import gettext_noop as _

# So few classes of texts, though more than two, with so many labels each are learned better by one release of sums.
FEW_CLASSES, LABELS_FOR_SUMS = range(3, 13), 40


@dataclass(frozen=True)
class PlannedEstimator(GaussianChoice):
    """What public trials found best for the number of classes."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("what suits the classes: noisy gradient steps, one price for any classes (has a delta)")
    words: ClassVar[str] = _("softmax regression by noisy gradient steps over all rows")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    picks: ClassVar[bool] = True

    def estimator(self, shape: Shape) -> PrivateEstimator:
        return stands_for(type(self), len(shape.classes)).of(self.document()).estimator(shape)


def stands_for(choice: type[EstimatorChoice], n_classes: int, *, texts: int | None = None) -> type[EstimatorChoice]:
    """Return the choice whose estimator another one has for so many classes: itself, unless that is planned.

    `texts` says how many labelled texts one release of the whole limit has; None where that is not known, or where
    records are no texts.
    """
    if not issubclass(choice, PlannedEstimator):
        return choice
    enough = texts is not None and n_classes in FEW_CLASSES and texts >= LABELS_FOR_SUMS * n_classes
    return Sums if enough else SoftmaxSteps
