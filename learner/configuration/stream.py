"""What a stream's configuration means to the learner: its screen, its batches, its online learner, its price."""

from typing import cast

from annotation.choices.label_types.learning import chosen_estimator
from annotation.choices.policies.catalogue import policy_choice_of
from annotation.choices.policies.updates import BatchPolicy
from annotation.models import Project
from learner.configuration.pool import estimator_choice_of, featurizer_of, strategy_choice_of
from learner.estimators.choice import INTERCEPT_SCALING, Shape
from learner.estimators.online_choices import OnlineChoice
from learner.estimators.streaming import StreamingLinearClassifier
from learner.features.base import Featurizer
from learner.strategies.base import OracleName
from learner.strategies.screen import Screen, ScreenChoice
from privacy.accounting.events import Event, StreamEvent


def stream_screen(project: Project, *, updates: int = 0) -> Screen | None:
    """Return the screen that decides about each record after so many updates, None where all are asked about.

    The number of updates is public, and what is charged are the rates, so a slab that it makes narrower costs the same.
    """
    choice = strategy_choice_of(project)
    if not isinstance(choice, ScreenChoice):
        return None
    screen = choice.in_stream(updates)
    screen.check_oracle(cast(OracleName, project.oracle))
    return screen


def policy_of(project: Project) -> BatchPolicy:
    """Return when the answers of a stream become an update."""
    return policy_choice_of(project.settings).batches()


def learner_of(project: Project, featurizer: Featurizer) -> StreamingLinearClassifier:
    """Return the online learner, not started; all of its parameters are public."""
    classes, online = list(range(len(project.classes))), online_choice_of(project)
    if online is not None:
        return online.learner(classes)
    learner = estimator_choice_of(project).estimator(Shape(classes, featurizer.norm_bound, INTERCEPT_SCALING))
    assert isinstance(learner, StreamingLinearClassifier)
    return learner


def online_choice_of(project: Project) -> OnlineChoice | None:
    """Return what learns from each answer of the project's stream, with its parameters; None where batches teach."""
    chosen = chosen_estimator(project.settings)
    return chosen.of(project.settings) if chosen is not None and issubclass(chosen, OnlineChoice) else None


def stream_event(project: Project) -> Event:
    """Return what the whole stream must be charged, before any record of it is read.

    Online learning asks about every record, as its rules demand, so that nothing is told by whom it asks, and each
    record makes one step. Whatever else learns is charged with the choice of what its batches are about.

    Raises
    ------
    ValueError
        If what batches make has no proof as the update of a stream.
    """
    featurizer = featurizer_of(project)
    update = learner_of(project, featurizer).event_for(featurizer.dimension)
    if online_choice_of(project) is not None:
        return update
    screen, policy = stream_screen(project), policy_of(project)
    q_hi, q_lo = (1.0, 1.0) if screen is None else screen.rates
    return StreamEvent(q_hi, q_lo, update, policy.selection_visible, policy.schedule)


def records_at_once(project: Project, *, batches: int, most: int) -> int:
    """Return how many records to read for `batches` further batches: about as many as these take, `most` at most."""
    slots = policy_of(project).slots_at(_smallest_rate(project))
    return most if slots is None else min(most, batches * slots)


def _smallest_rate(project: Project) -> float:
    screen = stream_screen(project)
    return 1.0 if screen is None else screen.rates[1]
