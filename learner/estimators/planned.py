"""The estimator that public trials found best for the number of classes."""

from dataclasses import dataclass
from typing import ClassVar

from learner.estimators.choice import OF_TRUSTED_POOLS, EstimatorChoice, GaussianChoice, PrivateEstimator, Shape
from learner.estimators.softmax_steps import SoftmaxSteps
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class PlannedEstimator(GaussianChoice):
    """Parameters that public trials found best for the number of classes."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("Automatic: noisy gradient descent (ε, δ)")
    words: ClassVar[str] = _("softmax regression, noisy gradient descent (ε, δ)")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    picks: ClassVar[bool] = True

    def estimator(self, shape: Shape) -> PrivateEstimator:
        return SoftmaxSteps.of(self.document()).estimator(shape)


def stands_for(choice: type[EstimatorChoice]) -> type[EstimatorChoice]:
    """Return the choice whose estimator another one has: itself, unless that is planned."""
    return SoftmaxSteps if issubclass(choice, PlannedEstimator) else choice
