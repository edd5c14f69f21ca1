"""The model that public words about classes are worth: what trainings lean on where nothing better is released."""

import numpy as np

from annotation.choices.merged_classes import counted_words
from annotation.models import DataKind, Project
from learner.configuration.classes import learned_classes
from learner.configuration.pool import estimator_of, featurizer_of
from learner.errors import NoVersionZero
from learner.estimators.bandit import BanditMutualInformationOGD
from learner.estimators.descriptions import ClassDescription
from learner.estimators.huber_svm import PrivateHuberSVM
from learner.estimators.logistic import PrivateLogisticRegression
from learner.estimators.minibatch_svm import MiniBatchPrivateSVM
from learner.estimators.randomized_answers import RandomizedAnswersClassifier
from learner.estimators.running_sums import RunningSums
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.estimators.streaming import StreamingLinearClassifier
from learner.estimators.sums import PrivateSums
from learner.estimators.version_zero import (
    STREAM_SMOOTHING,
    Encode,
    enough_examples,
    huber_prior,
    names_suffice,
    version_zero,
    word_directions,
)
from learner.linear_model import LinearModel
from learner.starts.class_words import descriptions_of
from privacy.wording import as_message


def described_model(project: Project) -> LinearModel | None:
    """Return the model of the words about the project's classes, at epsilon 0; None where there are none."""
    descriptions = _words(project)
    if not descriptions or project.data_kind != DataKind.TEXT:
        return None
    return version_zero(learned_classes(project), descriptions, _encoder_of(project))


def why_no_version_zero(project: Project) -> str:
    """Say why a project has no model of words alone; an empty text where it has one."""
    if project.data_kind != DataKind.TEXT:
        return as_message(
            "There is no version 0: words about classes are compared with texts, and these records are none."
        )
    if not learned_classes(project):
        return as_message("There is no version 0: the project names no class yet.")
    if not _words(project) and not featurizer_of(project).knows_words:
        return as_message(
            "There is no version 0: nobody wrote about the classes, and to hashed words a name alone means nothing. "
            "Write a few lines about each class in the settings, or choose an encoder."
        )
    return ""


def version_zero_of(project: Project) -> LinearModel:
    """Return the model that is given out as version 0: of the words about the classes, else of their names.

    Raises
    ------
    NoVersionZero
        If the project has nothing that says something to its features.
    """
    why_not = why_no_version_zero(project)
    if why_not:
        raise NoVersionZero(why_not)
    return version_zero(learned_classes(project), _words(project), _encoder_of(project))


def word_prior(project: Project) -> LinearModel | None:
    """Return the model that learning from randomised answers starts from; None where words mean nothing to it.

    To hashed words a class that nobody described is a stranger, to an encoder its name says something.
    """
    descriptions = _words(project)
    if not descriptions and not featurizer_of(project).knows_words:
        return None
    return word_directions(learned_classes(project), descriptions, _encoder_of(project))


def described_prior(project: Project) -> LinearModel | None:
    """Return what a first training starts from, in the scale of the project's estimator; None where it cannot.

    Steps and sums lean on the names of the classes where nobody wrote more and an encoder reads them. Logistic
    regression and Huber SVMs lean on examples alone: towards names or sentences they were right less often.
    """
    estimator = estimator_of(project, featurizer_of(project))
    if isinstance(estimator, RandomizedAnswersClassifier):
        return word_prior(project)
    descriptions = _words(project)
    if project.data_kind != DataKind.TEXT:
        return None
    if isinstance(estimator, PrivateSoftmaxSteps | PrivateSums):
        if not descriptions and not featurizer_of(project).knows_words:
            return None
        return version_zero(learned_classes(project), descriptions, _encoder_of(project))
    classes = learned_classes(project)
    if not enough_examples(classes, descriptions):
        return None
    if isinstance(estimator, PrivateHuberSVM):
        return huber_prior(classes, descriptions, _encoder_of(project), smoothing=estimator.smoothing)
    if isinstance(estimator, PrivateLogisticRegression):
        return version_zero(classes, descriptions, _encoder_of(project))
    return None


def stream_start(project: Project, learner: StreamingLinearClassifier) -> LinearModel | None:
    """Return what a stream starts from in the scale of its learner; None where words are too few to say it.

    Steps from confirmations start from zero: they would hardly leave a start, and it would pass for something learned.
    """
    classes, descriptions = learned_classes(project), _words(project)
    if project.data_kind != DataKind.TEXT or isinstance(learner, BanditMutualInformationOGD):
        return None
    by_names = isinstance(learner, RunningSums) and featurizer_of(project).knows_words and names_suffice(classes)
    if not (by_names or enough_examples(classes, descriptions)):
        return None
    if isinstance(learner, MiniBatchPrivateSVM):
        return huber_prior(classes, descriptions, _encoder_of(project), smoothing=STREAM_SMOOTHING)
    return version_zero(classes, descriptions, _encoder_of(project))


def _words(project: Project) -> dict[str, ClassDescription]:
    """Return the words about the classes that are learned: a class's own, and those of all that count as it."""
    lines = counted_words(project.settings.get("class_descriptions") or (), project.merged_classes)
    return descriptions_of({"class_descriptions": lines}, learned_classes(project))


def _encoder_of(project: Project) -> Encode:
    featurizer = featurizer_of(project)
    return lambda texts: featurizer.transform(list(texts)).astype(np.float64)
