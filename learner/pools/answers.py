"""Answers that a training may read."""

from dataclasses import dataclass

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from numpy.typing import NDArray

from annotation import selectors as annotation_selectors
from annotation.budget.label_budget import label_budget
from annotation.models import Membership, Oracle, Project, Query, QueryState, Role, Selection, WorkState
from annotation.models.questions import FURTHER_ANSWERS
from learner.estimators.randomized_answers import FREE_TRAINING
from learner.models import ModelRelease, Round
from learner.models.answers import AnswerSeries, RandomizedLabel
from learner.pools import records
from learner.pools.configuration import answers_are_open, answers_event_of
from learner.pools.records import Examples
from privacy.accounting.event import Event
from privacy.accounting.events import PostProcessingEvent
from privacy.ledger.models import LedgerEntry
from privacy.mechanisms.randomized_response import ResponseMechanism, mechanism_of


@dataclass(frozen=True, slots=True)
class Responses:
    examples: Examples
    likelihoods: NDArray[np.float64]


def randomizes_answers(project: Project) -> bool:
    """Say whether everybody outside reads responses, and answers stay with the managers."""
    return answers_event_of(project) is not None


def learns_from_questions(project: Project) -> bool:
    """Say whether models are made of what is known of each question, so that no training is charged for by itself."""
    return randomizes_answers(project) or answers_are_open(project)


def response_of(project: Project) -> ResponseMechanism:
    event = answers_event_of(project)
    assert event is not None
    return mechanism_of(event)


def series_entry(project: Project) -> LedgerEntry | None:
    """Return the committed entry that pays for all answers, None before there is one."""
    series = AnswerSeries.objects.filter(project=project).select_related("entry__account", "entry__parent").first()
    return None if series is None else series.entry


def next_event(project: Project) -> Event | None:
    if answers_are_open(project):
        return PostProcessingEvent(operation=FREE_TRAINING)
    event = answers_event_of(project)
    if event is None or series_entry(project) is None:
        return event
    return PostProcessingEvent(operation="training on randomised answers")


def unsaid_questions(project: Project) -> QuerySet[Query]:
    """Return the questions whose answers stay as they are and of which nothing was said yet since they came in."""
    said = RandomizedLabel.objects.filter(query=OuterRef("pk"), answers=OuterRef("overlap"))
    return annotation_selectors.settled_for_good(project).filter(~Exists(said), gate_run__isnull=False)


def responses_of(project: Project) -> Responses:
    said = RandomizedLabel.objects.filter(project=project).order_by("query_id", "number")
    rows = list(said.values_list("query_id", "said", "kept"))
    questions = Query.objects.filter(pk__in=[query for query, _said, _kept in rows])
    examples = records.gate_examples(project, questions)
    response = response_of(project)
    likelihoods = np.ones((len(examples.ids), len(project.classes)))
    if rows:
        kept = np.zeros((len(rows), len(project.classes)), dtype=np.bool_)
        for place, (_query, _said, classes) in enumerate(rows):
            kept[place, classes] = True
        each = response.likelihoods(np.array([said for _query, said, _kept in rows]), kept)
        # The oldest questions come first in both.
        places = np.searchsorted(examples.ids, [query for query, _said, _kept in rows])
        np.multiply.at(likelihoods, places, each)
    return Responses(examples, likelihoods)


def open_answers_of(project: Project, *, last_consensus_id: int) -> Responses:
    """Return what questions were agreed on up to this consensus, where answers are declared not to be secret."""
    examples, classes = records.labelled_examples(project, last_consensus_id=last_consensus_id)
    certain: NDArray[np.float64] = np.eye(len(project.classes))[classes]
    return Responses(examples, certain)


def spoken_entries(project: Project) -> list[LedgerEntry]:
    ids = RandomizedLabel.objects.filter(project=project).values("entry")
    return list(LedgerEntry.objects.filter(pk__in=ids).select_related("account", "parent").order_by("sequence"))


def gate_counts(project: Project) -> NDArray[np.float64]:
    """Return how often each text of the gate's output was said, as the gate told it, > 0; shape (rows,)."""
    rows = records.gate_output(project).values_list("sample_count", "noisy_count")
    counts = [noisy if sample is None else sample for sample, noisy in rows]
    return np.maximum(np.array(counts, dtype=np.float64), 1.0)


def with_responses_left(questions: QuerySet[Query], project: Project) -> QuerySet[Query]:
    """Leave out the questions whose responses are used up: another one would cost what nobody has paid."""
    event = answers_event_of(project)
    if event is None:
        return questions
    last = RandomizedLabel.objects.filter(query=OuterRef("pk"), number__gte=event.randomizations)
    # One whose answers were not said yet will be, so it is not asked again before.
    said = RandomizedLabel.objects.filter(query=OuterRef("pk"), answers=OuterRef("overlap"))
    return questions.filter(Exists(said), ~Exists(last))


# A question gets at most so many times the answers it was opened for.
MOST_TIMES = 3
SETTLED = (QueryState.CLOSED, QueryState.DISPUTED)


def asks_again(project: Project, model: ModelRelease | None) -> bool:
    """Say whether half of what passed the gate was asked, and `model` has not named what it doubts yet."""
    if not project.repeat_votes or project.oracle != Oracle.CROWD:
        return False
    passed = Query.objects.filter(project=project, gate_run__isnull=False)
    asked = passed.exclude(state=QueryState.UNASKED).count()
    if not 0 < passed.count() <= 2 * asked:
        return False
    earlier = Round.objects.filter(project=project, strategy=Selection.REPEAT_VOTES, model=model)
    return not earlier.exclude(state=WorkState.FAILED).exists() and settled_questions(project).exists()


def settled_questions(project: Project) -> QuerySet[Query]:
    """Return the questions of the gate's output that enough annotators are left for, whatever was answered to them."""
    people = Membership.objects.filter(project=project, role=Role.ANNOTATOR).count()
    # Nobody answers a question twice.
    most = min(people, MOST_TIMES * project.overlap) - FURTHER_ANSWERS
    found = Query.objects.filter(project=project, state__in=SETTLED, gate_run__isnull=False, overlap__lte=most)
    return with_responses_left(found, project)


def affordable_repeats(project: Project) -> int | None:
    """Return how many questions the label budget can ask again, None where there is no limit."""
    left = label_budget(project).left
    return None if left is None else left // FURTHER_ANSWERS
