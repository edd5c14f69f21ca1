"""The estimator that public trials found best for the number of classes."""

from dataclasses import dataclass
from typing import ClassVar

from learner.estimators.choice import OF_TRUSTED_POOLS, EstimatorChoice, GaussianChoice, PrivateEstimator, Shape
from learner.estimators.huber_svm import HuberChoice, HuberSvmGaussian
from learner.estimators.logistic import PerturbationMethod
from learner.estimators.softmax_steps import SoftmaxSteps
from learner.estimators.sums import Sums
from privacy.choices import Sound
from privacy.wording import gettext_noop as _

# So few classes of texts with so many labels each are learned better by one release of sums than by steps.
FEW_CLASSES, LABELS_FOR_SUMS = 12, 40


@dataclass(frozen=True)
class PlannedEstimator(HuberChoice, GaussianChoice):
    """What public trials found best for the number of classes."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("what suits the classes: a Huber SVM for two, noisy gradient steps for more (has a delta)")
    words: ClassVar[str] = _("Huber SVM for two classes, softmax regression by noisy gradient steps for more")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    # Of two classes there is nothing to divide, and steps do not.
    divides_epsilon: ClassVar[bool] = False
    rank: ClassVar[int] = 1
    method: ClassVar[PerturbationMethod] = "gaussian"

    @classmethod
    def stands_for(cls, n_classes: int, *, texts: int | None = None) -> type[EstimatorChoice]:
        """Return what public trials found best."""
        if n_classes <= 2:
            return HuberSvmGaussian
        enough = texts is not None and n_classes <= FEW_CLASSES and texts >= LABELS_FOR_SUMS * n_classes
        return Sums if enough else SoftmaxSteps

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator of so many classes, unfitted."""
        return self.stands_for(len(shape.classes)).of(self.document()).estimator(shape)
