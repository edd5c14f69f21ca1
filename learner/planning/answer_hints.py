"""What a plan says of a crowd's answers: whether so many responses teach anything, and how many people they take."""

import math
from typing import Final

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.choices.randomizer_base import ANNOTATOR
from annotation.models import Project
from learner.configuration.pool import answers_event_of
from privacy.accounting.answers import LARGEST_EPSILON
from privacy.accounting.events import AnswersEvent

# Below so many answers' worth for each class the words about the classes know more (`docs/results/crowd.md`).
ANSWERS_A_CLASS: Final = 0.35
STEP: Final = 0.25


def answer_hints(project: Project, questions: int) -> list[str]:
    """Return what is to be said of so many questions to a crowd whose answers are randomised."""
    event = answers_event_of(project)
    if event is None or questions < 1:
        return []
    return [hint for hint in (_too_little(event, questions), _people(project, event, questions)) if hint]


def worth(event: AnswersEvent, epsilon: float, questions: int) -> float:
    """Return how many answers, as they are, so many questions are worth whose responses cost `epsilon` each."""
    return questions * min(1.0, event.randomizations * event.information(epsilon))


def _too_little(event: AnswersEvent, questions: int) -> str:
    """Say where answers add almost nothing, and from which epsilon on they would."""
    enough = ANSWERS_A_CLASS * event.n_classes
    worth_now = worth(event, event.epsilon, questions)
    if worth_now >= enough:
        return ""
    responses = event.randomizations * event.questions_per_annotator
    steps = range(1, int(LARGEST_EPSILON * responses / STEP) + 1)
    helping = next((step * STEP for step in steps if worth(event, step * STEP / responses, questions) >= enough), None)
    numbers = {
        "questions": number_format(questions, force_grouping=True),
        "worth": number_format(f"{worth_now:.1f}"),
        "classes": event.n_classes,
    }
    said = ngettext(
        "At this epsilon answers add almost nothing: %(questions)s question is worth about %(worth)s answers said "
        "openly, for %(classes)s classes. A few words about each class teach more and cost nothing.",
        "At this epsilon answers add almost nothing: %(questions)s questions are worth about %(worth)s answers said "
        "openly, for %(classes)s classes. A few words about each class teach more and cost nothing.",
        questions,
    )
    if helping is None or helping > LARGEST_EPSILON:
        return said % numbers
    helps = _("From about ε %(epsilon)s of all answers on, so many questions begin to help.")
    return f"{said % numbers} {helps % {'epsilon': number_format(f'{helping:g}')}}"


def _people(project: Project, event: AnswersEvent, questions: int) -> str:
    """Say how many annotators are needed where none may answer more than a cap."""
    if event.unit != ANNOTATOR:
        return ""
    people = max(project.overlap, math.ceil(questions * project.overlap / event.questions_per_annotator))
    return ngettext(
        "These questions need at least %(people)s annotator, since nobody answers more than %(cap)s.",
        "These questions need at least %(people)s annotators, since nobody answers more than %(cap)s.",
        people,
    ) % {"people": number_format(people, force_grouping=True), "cap": event.questions_per_annotator}
