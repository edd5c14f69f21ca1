"""What a person answered, for themselves: what they may still change, and what a manager sent back to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import connection
from django.db.models import Q
from django.urls import reverse

from annotation import selectors
from annotation.models import Label, Project, QueryState, Record, Report, ReportKind
from annotation.questions.answers import answer_name, names_of, places_in

PAGE = 20
# Each answer that may be changed comes with the whole list of classes.
OPTIONS_A_PAGE = 2000
ASKED_RECORDS = f"""
SELECT {selectors.RECORD.sql}
FROM unnest(%s::bigint[]) AS wanted (id) CROSS JOIN LATERAL annotation_asked_record(wanted.id) record
"""  # noqa: S608 - names of columns


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """One answer as the person who gave it sees it."""

    label: Label
    question: selectors.Question
    name: str
    places: Sequence[int]
    guess: str | None
    comment: str | None
    may_change: bool


@dataclass(frozen=True, slots=True)
class OwnPage:
    """Answers, newest first, and where the next page begins; None where there is none."""

    answers: Sequence[OwnAnswer]
    before: int | None


def own_answers(project: Project, user: AbstractBaseUser, *, before: int | None, sent_back: bool) -> OwnPage:
    """Return a page of a person's answers, or of those alone that came back; in four statements, however many."""
    own = Label.objects.filter(annotator=user.pk, query__project=project, superseded_at=None, query__emptied=False)
    own = own.exclude(query__state=QueryState.SET_ASIDE).filter(choice__isnull=False)
    returned = Report.objects.filter(
        project=project, annotator=user.pk, kind=ReportKind.RETURNED, resolved_at=None
    ).values_list("query", "comment")
    comments = dict(returned)
    if sent_back:
        own = own.filter(query__in=comments)
    if before is not None:
        own = own.filter(Q(pk__lt=before))
    names = names_of(project)
    most = max(1, min(PAGE, OPTIONS_A_PAGE // len(names)))
    labels = list(own.select_related("query", "assignment").order_by("-pk")[: most + 1])
    more, labels = len(labels) > most, labels[:most]
    records = _records([label.query.record_id for label in labels if label.query.record_id is not None])
    correctable = selectors.correctable_assignments(user.pk).filter(
        project=project, pk__in=[label.assignment_id for label in labels]
    )
    open_still = set(correctable.values_list("pk", flat=True))
    found = []
    for label in labels:
        query = label.query
        query.record = records.get(query.record_id) if query.record_id else None
        image: Any = reverse("annotation:question_image", args=[label.assignment_id])
        found.append(
            OwnAnswer(
                label=label,
                question=selectors.shown_of(project, query, image_url=image),
                name=answer_name(project, label.choice) if label.choice is not None else "",
                places=() if label.choice is None else places_in(project, label.choice),
                guess=None if query.guess is None else str(project.classes[query.guess]),
                comment=comments.get(query.pk),
                may_change=label.assignment_id in open_still,
            )
        )
    return OwnPage(found, labels[-1].pk if more else None)


def _records(ids: Sequence[int]) -> dict[int | None, Record]:
    """Return what was put before annotators of some records, which the label pages may ask for and nothing else."""
    with connection.cursor() as cursor:
        cursor.execute(ASKED_RECORDS, [list(ids)])
        rows = cursor.fetchall()
    found = (selectors.RECORD.build(iter(row)) for row in rows)
    return {record.pk: record for record in found if record is not None}
