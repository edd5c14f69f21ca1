"""Whether more answers still help, as the newest version says, in words for everybody who may see models."""

from dataclasses import dataclass

from annotation.models import Arrival, Project, ProjectState
from learner.models import ModelRelease, StoppingAdvice
from learner.selectors import answers as answer_selectors
from learner.strategies.stopping import StabilizedPredictions
from privacy.wording import Message, as_message

PERCENT = 100


@dataclass(frozen=True, slots=True)
class MoreAnswers:
    """What a project's page says of further answers; `stop` is None while there are too few versions to tell."""

    sentence: Message
    stop: bool | None
    may_pause: bool


def more_answers(project: Project, newest: ModelRelease | None) -> MoreAnswers | None:
    """Return what the newest version says of further answers; None where that is not known or not free to look at."""
    if newest is None or project.arrival == Arrival.STREAM or not answer_selectors.learns_from_questions(project):
        return None
    may_pause = project.state == ProjectState.ACTIVE
    advice = advice_of(newest)
    if advice is None:
        needed = StabilizedPredictions().comparisons + 1
        return MoreAnswers(
            as_message(
                "From {versions} comparable versions on it is said here whether more answers help.", versions=needed
            ),
            None,
            may_pause,
        )
    return MoreAnswers(stopping_sentence(advice, newest), advice.stop, may_pause)


def advice_of(release: ModelRelease) -> StoppingAdvice | None:
    """Return what a version says of further answers, None where it could not be compared."""
    return getattr(release, "stopping_advice", None)


def stopping_sentence(advice: StoppingAdvice, release: ModelRelease) -> Message:
    """Say it with the numbers it was judged by."""
    if advice.stop:
        return as_message(
            "More answers no longer help: the last {models} versions read what passed the gate alike (Cohen's kappa "
            "{agreement:.3f}, {threshold:.3g} is enough).",
            models=advice.models_compared,
            agreement=advice.agreement,
            threshold=advice.threshold,
        )
    return as_message(
        "Still improving, by about {moved:.1f} points at most: version {version} reads that share of what was said "
        "otherwise than the version before it (Cohen's kappa {agreement:.3f}, {threshold:.3g} is wanted).",
        moved=PERCENT * advice.moved,
        version=release.version,
        agreement=advice.agreement,
        threshold=advice.threshold,
    )
