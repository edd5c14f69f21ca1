"""The model that public words about classes are worth: what trainings lean on where nothing better is released."""

import numpy as np

from annotation.choices.merged_classes import counted_words
from annotation.models import DataKind, Project
from learner.configuration.classes import learned_classes
from learner.configuration.pool import estimator_of, featurizer_of
from learner.errors import NoVersionZero
from learner.estimators.descriptions import ClassDescription
from learner.estimators.streaming import StreamingLinearClassifier
from learner.estimators.version_zero import Encode, EncodedWords, version_zero
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
    words = _encoded_words(project)
    return words.directions() if words is not None and words.say_something else None


def described_prior(project: Project) -> LinearModel | None:
    """Return what a first training starts from, in the scale of the project's estimator; None where it cannot."""
    words = _encoded_words(project)
    return None if words is None else estimator_of(project, featurizer_of(project)).leaning(words)


def stream_start(project: Project, learner: StreamingLinearClassifier) -> LinearModel | None:
    """Return what a stream starts from in the scale of its learner; None where words are too few to say it."""
    words = _encoded_words(project)
    return None if words is None else learner.first_model(words)


def _encoded_words(project: Project) -> EncodedWords | None:
    """Return all words about the project's classes with its features, None where these are not of texts."""
    if project.data_kind != DataKind.TEXT:
        return None
    knows_names = featurizer_of(project).knows_words
    return EncodedWords(tuple(learned_classes(project)), _words(project), _encoder_of(project), knows_names)


def _words(project: Project) -> dict[str, ClassDescription]:
    """Return the words about the classes that are learned: a class's own, and those of all that count as it."""
    lines = counted_words(project.settings.get("class_descriptions") or (), project.merged_classes)
    return descriptions_of({"class_descriptions": lines}, learned_classes(project))


def _encoder_of(project: Project) -> Encode:
    featurizer = featurizer_of(project)
    return lambda texts: featurizer.transform(list(texts)).astype(np.float64)
