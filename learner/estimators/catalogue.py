"""Estimators by the names under which projects store them; none of them trains without noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.catalogue import CATALOGUE
from learner.estimators.choice import EstimatorChoice, GaussianChoice, PrivateEstimator, Shape, SumsChoice
from learner.estimators.kinds import KINDS, Training
from learner.estimators.label_sets import LabelSets
from learner.estimators.online_choices import Confirmations, FullInformation
from learner.estimators.randomized_answers import KnownChannel
from learner.estimators.running_sums import OfRunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.sums import PrivateSums
from privacy.choices import Choice, Kind, Sound, parameter
from privacy.wording import gettext_noop as _

OF_POOLS: Final = {
    "stream": _(
        "The records of a stream pay once, so each may feed one noisy step; this estimator reads all labels again."
    )
}
WITHOUT_DELTA: Final = {"crowd": _("The account of the answers has no delta, and Gaussian noise needs one.")}


@dataclass(frozen=True)
class _Convex(EstimatorChoice):
    """What every convex objective has."""

    sound: ClassVar[Sound] = Sound(arrivals=("pool",), why_not=OF_POOLS)

    regularization: float = parameter(
        1.0,
        above=0,
        label=_("Regularisation"),
        help=_("Public constant of the summed objective."),
        rule=_("Must be above 0: without it the sensitivity has no bound, got {got}."),
    )

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator, unfitted."""
        training = Training(
            self.training_epsilon,
            delta=getattr(self, "training_delta", 0.0),
            regularization=self.regularization,
            smoothing=getattr(self, "smoothing", 0.5),
            adjacency=shape.adjacency,
        )
        return KINDS[self.name].build(training, _arguments(shape))


@dataclass(frozen=True)
class _Huber(_Convex):
    """What every support vector machine of Huber loss has."""

    smoothing: float = parameter(
        0.5,
        at_least=0.125,
        at_most=8,
        label=_("Huber loss: half width of the bend"),
        help=_("From 0.125 to 8; a wider bend needs less noise and is less of a hinge."),
        rule=_("Must lie between 0.125 and 8, got {got}: the plain hinge has no curvature bound."),
    )


@dataclass(frozen=True)
class Logistic(_Convex):
    """Logistic regression with a tilted objective."""

    name: ClassVar[str] = "logistic"
    label: ClassVar[str] = _("logistic regression, objective perturbation")
    words: ClassVar[str] = KINDS["logistic"].words


@dataclass(frozen=True)
class LogisticGaussian(_Convex, GaussianChoice):
    """Logistic regression with a Gaussian tilt."""

    name: ClassVar[str] = "logistic_gaussian"
    label: ClassVar[str] = _("logistic regression, Gaussian objective perturbation (has a delta)")
    words: ClassVar[str] = KINDS["logistic_gaussian"].words
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("pool",), why_not=OF_POOLS | WITHOUT_DELTA)


@dataclass(frozen=True)
class LogisticOutput(_Convex):
    """Logistic regression with noisy weights."""

    name: ClassVar[str] = "logistic_output"
    label: ClassVar[str] = _("logistic regression, output perturbation")
    words: ClassVar[str] = KINDS["logistic_output"].words


@dataclass(frozen=True)
class HuberSvm(_Huber):
    """Huber SVM with a tilted objective."""

    name: ClassVar[str] = "huber_svm"
    label: ClassVar[str] = _("Huber SVM, objective perturbation")
    words: ClassVar[str] = KINDS["huber_svm"].words


@dataclass(frozen=True)
class HuberSvmGaussian(_Huber, GaussianChoice):
    """Huber SVM with a Gaussian tilt."""

    name: ClassVar[str] = "huber_svm_gaussian"
    label: ClassVar[str] = _("Huber SVM, Gaussian objective perturbation (has a delta)")
    words: ClassVar[str] = KINDS["huber_svm_gaussian"].words
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("pool",), why_not=OF_POOLS | WITHOUT_DELTA)


@dataclass(frozen=True)
class HuberSvmOutput(_Huber):
    """Huber SVM with noisy weights."""

    name: ClassVar[str] = "huber_svm_output"
    label: ClassVar[str] = _("Huber SVM, output perturbation")
    words: ClassVar[str] = KINDS["huber_svm_output"].words


@dataclass(frozen=True)
class Sums(SumsChoice):
    """The best model that one noisy release of sums gives."""

    name: ClassVar[str] = "sums"
    label: ClassVar[str] = _("least squares, discriminants or class means from noisy sums, one price for any classes")
    words: ClassVar[str] = "linear model made from one noisy release of sums"
    sound: ClassVar[Sound] = Sound(oracles=("trusted",), arrivals=("pool",), why_not=OF_POOLS | WITHOUT_DELTA)

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator, unfitted."""
        return PrivateSums(
            self.training_epsilon,
            delta=self.training_delta,
            moment_share=self.moment_share,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )


@dataclass(frozen=True)
class SoftmaxSteps(GaussianChoice):
    """Softmax regression by a few noisy gradients."""

    name: ClassVar[str] = "softmax_steps"
    label: ClassVar[str] = _("softmax regression by noisy gradient steps, one price for any classes (has a delta)")
    words: ClassVar[str] = "softmax regression by noisy gradient steps over all rows"
    sound: ClassVar[Sound] = Sums.sound

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator, unfitted."""
        return PrivateSoftmaxSteps(
            self.training_epsilon,
            delta=self.training_delta,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )


@dataclass(frozen=True)
class PlannedEstimator(_Huber, GaussianChoice):
    """What public trials found best for the number of classes."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("what suits the classes: a Huber SVM for two, noisy gradient steps for more (has a delta)")
    words: ClassVar[str] = "Huber SVM for two classes, softmax regression by noisy gradient steps for more"
    sound: ClassVar[Sound] = Sums.sound

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator of so many classes, unfitted."""
        if len(shape.classes) > 2:
            return SoftmaxSteps(self.training_epsilon, self.training_delta).estimator(shape)
        training = Training(
            self.training_epsilon,
            delta=self.training_delta,
            regularization=self.regularization,
            smoothing=self.smoothing,
        )
        return KINDS["huber_svm_gaussian"].build(training, _arguments(shape))


@dataclass(frozen=True)
class MinibatchSvm(EstimatorChoice):
    """Noisy steps on batches; of a stream one step for each batch as it comes."""

    name: ClassVar[str] = "minibatch_svm"
    label: ClassVar[str] = _("SVM by noisy steps on batches")
    words: ClassVar[str] = KINDS["minibatch_svm"].words

    step_size: float | None = parameter(
        None, above=0, label=_("Step size"), help=_("How far one noisy batch moves the weights.")
    )
    weight_radius: float | None = parameter(
        None,
        above=0,
        label=_("Radius of the weights"),
        help=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
    )
    average_iterates: bool = parameter(
        True,
        arrivals=("stream",),
        label=_("Release the average of all updates"),
        help=_("Averaging takes noise out of the weights and costs nothing."),
    )

    def estimator(self, shape: Shape) -> PrivateEstimator:
        """Return the estimator of a pool's training, unfitted."""
        training = Training(
            self.training_epsilon,
            step_size=self.step_size,
            radius=self.weight_radius,
            average=self.average_iterates,
            adjacency=shape.adjacency,
        )
        return KINDS[self.name].build(training, _arguments(shape))

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a list of secret length."""
        if settings.get("selection") != "secret_sample":
            return {}
        return {
            "estimator": _(
                "Batches are cut from a list of public length, and how many a secret sample holds is secret; train by "
                "objective or output perturbation."
            )
        }


# What projects may choose, in the order in which forms list it; a new estimator joins by one line.
CHOICES: tuple[type[Choice], ...] = (
    Logistic,
    LogisticGaussian,
    LogisticOutput,
    HuberSvm,
    HuberSvmGaussian,
    HuberSvmOutput,
    PlannedEstimator,
    SoftmaxSteps,
    Sums,
    LabelSets,
    MinibatchSvm,
    OfRunningSums,
    KnownChannel,
    FullInformation,
    Confirmations,
)


def _arguments(shape: Shape) -> dict[str, Any]:
    return {
        "classes": shape.classes,
        "norm_bound": shape.norm_bound,
        "intercept_scaling": shape.intercept_scaling,
        "prior": shape.prior,
    }


def words_for(name: str) -> str:
    """Return what a model card says of an estimator.

    Raises
    ------
    ValueError
        If no choice has that name.
    """
    found: Any = next((choice for choice in CHOICES if choice.name == name), CATALOGUE.find(Kind.ESTIMATOR, name))
    if found is None:
        raise ValueError(f"no estimator is called {name!r}")
    words: str = found.words
    return words
