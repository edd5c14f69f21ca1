"""The estimator that public trials found best for the number of classes."""

from dataclasses import dataclass
from typing import ClassVar

from learner.estimators.choice import OF_TRUSTED_POOLS, GaussianChoice, PrivateEstimator, Shape
from learner.estimators.huber_svm import HuberChoice
from learner.estimators.logistic import PerturbationMethod
from learner.estimators.softmax_steps import SoftmaxSteps
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class PlannedEstimator(HuberChoice, GaussianChoice):
    """What public trials found best for the number of classes."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("what suits the classes: a Huber SVM for two, noisy gradient steps for more (has a delta)")
    words: ClassVar[str] = _("Huber SVM for two classes, softmax regression by noisy gradient steps for more")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    # Of two classes there is nothing to divide, and steps do not.
    divides_epsilon: ClassVar[bool] = False
    method: ClassVar[PerturbationMethod] = "gaussian"

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator of so many classes, unfitted."""
        if len(shape.classes) > 2:
            return SoftmaxSteps(self.training_epsilon, self.training_delta).estimator(shape)
        return super().estimator(shape)
