"""Selectors of a person's own answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Q
from django.urls import reverse

from annotation import selectors
from annotation.models import Assignment, Label, Project, Query, QueryState, Report
from annotation.questions.selectors import flags
from annotation.questions.selectors.answers import answer_name, answer_names, places_in

PAGE = 20
# Each answer that may be changed comes with the whole list of classes.
OPTIONS_A_PAGE = 2000


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    label: Label
    question: selectors.Question
    name: str
    places: Sequence[int]
    guess: str | None
    said: Sequence[Report]
    may_change: bool

    @property
    def query_id(self) -> int:
        return self.label.query_id

    @property
    def is_unread(self) -> bool:
        return _is_unread(self.said)


@dataclass(frozen=True, slots=True)
class OtherFlags:
    query_id: int
    question: selectors.Question | None
    said: Sequence[Report]

    @property
    def is_unread(self) -> bool:
        return _is_unread(self.said)


@dataclass(frozen=True, slots=True)
class OwnPage:
    answers: Sequence[OwnAnswer]
    others: Sequence[OtherFlags]
    before: int | None


def own_answers(project: Project, user: AbstractBaseUser, *, before: int | None, unread: bool) -> OwnPage:
    own = Label.objects.filter(annotator=user.pk, query__project=project, superseded_at=None, query__emptied=False)
    own = own.exclude(query__state=QueryState.SET_ASIDE).filter(choice__isnull=False)
    if unread:
        own = own.filter(query__in=flags.unread_by(project, user.pk).values("query"))
    if before is not None:
        own = own.filter(Q(pk__lt=before))
    names = answer_names(project)
    most = max(1, min(PAGE, OPTIONS_A_PAGE // len(names)))
    labels = list(own.select_related("query", "assignment").order_by("-pk")[: most + 1])
    more, labels = len(labels) > most, labels[:most]
    others = _others(project, user, unread=unread) if before is None else []
    conversations = flags.own_flags(
        project, user.pk, [*(label.query_id for label in labels), *(turn.query_id for turn in others)]
    )
    queries = [*(label.query for label in labels), *(turn.query for turn in others if _is_shown(turn.query))]
    records = selectors.asked_records(query.record_id for query in queries if query.record_id is not None)
    for query in queries:
        query.record = records.get(query.record_id) if query.record_id else None
    correctable = selectors.correctable_assignments(user.pk).filter(
        project=project, pk__in=[label.assignment_id for label in labels]
    )
    open_still = set(correctable.values_list("pk", flat=True))
    found = [
        OwnAnswer(
            label=label,
            question=_asked(project, label.query, label.assignment_id),
            name=answer_name(project, label.choice) if label.choice is not None else "",
            places=() if label.choice is None else places_in(project, label.choice),
            guess=None if label.query.guess is None else str(project.classes[label.query.guess]),
            said=conversations.get(label.query_id, ()),
            may_change=label.assignment_id in open_still,
        )
        for label in labels
    ]
    beside = [
        OtherFlags(
            query_id=turn.query_id,
            question=_asked(project, turn.query, turn.pk) if _is_shown(turn.query) else None,
            said=conversations.get(turn.query_id, ()),
        )
        for turn in others
    ]
    return OwnPage(found, beside, labels[-1].pk if more else None)


def _others(project: Project, user: AbstractBaseUser, *, unread: bool) -> list[Assignment]:
    ids = flags.about_other_questions(project, user.pk, unread=unread)
    turns = Assignment.objects.filter(project=project, annotator=user.pk, query__in=ids).select_related("query")
    return sorted(turns, key=lambda turn: ids.index(turn.query_id))


def _is_shown(query: Query) -> bool:
    # What was found sensitive has left everybody's page.
    return query.state != QueryState.SET_ASIDE and not query.emptied


def _is_unread(said: Sequence[Report]) -> bool:
    return any(one.is_unread for one in said)


def _asked(project: Project, query: Query, turn_id: UUID) -> selectors.Question:
    image: Any = reverse("annotation:question_image", args=[turn_id])
    return selectors.shown_of(project, query, image_url=image)
