"""REST routes of the table of questions: narrowed down, and changed several at once."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Schema

from annotation import selectors
from annotation.errors import InvalidConfiguration
from annotation.models import Membership, Project, QueryState, ReportKind, Role
from annotation.people.identity import person_of
from annotation.questions.images import IMAGE_ANSWER
from annotation.questions.selectors.answers import answer_names
from annotation.questions.selectors.flags import may_read_questions
from annotation.review.forms import QuestionFilter
from annotation.review.images import readable_image
from annotation.review.selectors import questions as browsing
from annotation.review.services.changing import Change, change_chosen
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, project_for, responses, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()
LARGEST_ID = 2**63 - 1


class QuestionsIn(Schema):
    """Which questions; what is absent narrows nothing. People and classes go by their names."""

    state: Literal["", "open", "closed", "disputed", "in_review", "withdrawn", "set_aside"] = ""
    choice: str = Field("", description="An answer that somebody gave.")
    annotator: str = Field("", description="Somebody who answered.")
    agreement: Literal["", "all", "divided"] = ""
    round_number: int | None = Field(None, ge=1, le=2**31 - 1)
    age: Literal["", "new1", "new7", "old7", "old30"] = ""
    flag: Literal["", "any", "talk", "broken", "sensitive", "comment", "returned"] = Field(
        "", description="With such an open report, or `talk`: with any comment, read or not."
    )
    assigned: str = Field("", description="For whom it waits.")
    text: str = Field(
        "",
        max_length=200,
        description="Searched, or an owner's whole id, where the caller may read what questions show.",
    )
    before: int | None = Field(None, ge=1, le=LARGEST_ID, description="The `before` of the page read last.")


class CountOut(Answer, reads=Reads.MANAGED):
    """How often something was answered."""

    answer: str
    count: int


class QuestionRowOut(Answer, reads=Reads.MANAGED):
    """One question with what was answered; `text` and `fields` where the caller may read them."""

    id: int
    state: QueryState
    round_number: int | None
    answers: list[CountOut]
    annotators: list[str]
    agreed: str | None
    reports: list[ReportKind]
    answered_at: datetime | None
    assigned_to: str | None
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None = Field(
        None,
        description="Where the image is, where the caller may read it; with a token it is at `questions/{id}/image`.",
    )
    owner_id: str | None = Field(None, description="The owner's id of the record, where the caller may read it.")
    metadata: dict[str, str | None] | None = Field(None, description="The owner's columns, where `owner_id` is told.")


class QuestionEventOut(Answer, reads=Reads.MANAGED):
    """Something that happened to a question; `who` is null where it happened by itself."""

    when: datetime
    who: str | None
    what: Literal[
        "answered",
        "corrected",
        "taken_back",
        "skipped",
        "held",
        "agreed",
        "resolved",
        "broken",
        "sensitive",
        "comment",
        "returned",
        "reply",
        "read",
        "looked_again",
        "action",
    ]
    value: str | None = Field(
        description="The answer, the reason to skip, to whom a manager wrote, or of an action the page or route."
    )


class QuestionOut(QuestionRowOut):
    """One question with all that happened to it, oldest first; what was said is at `questions/{id}/comments`."""

    events: list[QuestionEventOut]


class QuestionsOut(Answer, reads=Reads.MANAGED):
    """At most 50 questions, newest first, and where the next page begins."""

    questions: list[QuestionRowOut]
    before: int | None


class ChangeIn(Schema):
    """What to do with questions: `comment` to send back, `person` (a name) to assign."""

    action: Literal["set_aside", "send_back", "assign", "unassign"]
    questions: list[int] = Field(min_length=1, max_length=browsing.PAGE)
    comment: str = Field("", max_length=1000)
    person: str = Field("", max_length=150)


class ChangedOut(Answer, reads=Reads.MANAGED):
    """The questions that changed; the others were not in a state for it."""

    changed: list[int]


@router.get("projects/{slug:slug}/questions", response=QuestionsOut, summary="What was asked, narrowed down")
def list_questions(request: HttpRequest, slug: str, wanted: Query[QuestionsIn]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    readable = may_read_questions(project, request.user)
    form = QuestionFilter(_by_number(project, wanted), project=project, readable=readable)
    if not form.is_valid():
        raise InvalidConfiguration("The project has no such class or annotator, or the text is too short.")
    page = browsing.questions(project, form.wanted(), readable=readable, before=wanted.before)
    return {"questions": [_row(row) for row in page.rows], "before": page.before}


@router.get(
    "projects/{slug:slug}/questions/{query_id}/image",
    summary="The image of a question, for managers who may read what questions show",
    openapi_extra=responses(responses={200: IMAGE_ANSWER}),
)
def get_question_image(request: HttpRequest, slug: str, query_id: str) -> HttpResponse:
    return readable_image(request, project_for(request, slug, Scope.LABELS_READ, Role.MANAGER), row_id(query_id))


@router.write(
    "projects/{slug:slug}/questions/changes", response=ChangedOut, summary="Do something with several questions at once"
)
def change_questions(request: HttpRequest, slug: str, body: ChangeIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    person = _people(project).get(body.person)
    wanted = Change(action=body.action, comment=body.comment, person=person)
    # No other number names a row.
    ids = [each for each in body.questions if 0 < each <= LARGEST_ID]
    done = change_chosen(project=project, query_ids=ids, wanted=wanted, actor=person_of(request).get_username())
    return {"changed": done}


# Behind the route of changes, whose address fits this one, too.
@router.get(
    "projects/{slug:slug}/questions/{query_id}",
    response=QuestionOut,
    summary="One question with all that happened to it",
)
def get_question(request: HttpRequest, slug: str, query_id: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    asked = selectors.asked_questions(project).select_related("record", "assigned_to")
    query = get_object_or_404(asked, pk=row_id(query_id))
    (row,) = browsing.question_rows(project, [query], readable=may_read_questions(project, request.user))
    return _row(row) | {"events": [_event(event) for event in browsing.history_of(project, query)]}


def _by_number(project: Project, wanted: QuestionsIn) -> Mapping[str, Any]:
    """Return the query as the page's form takes it; unknown names stay and fit no choice."""
    chosen = {name: value for name, value in wanted.dict().items() if value not in ("", None)}
    numbers = {
        "choice": {str(name): place for place, name in enumerate(answer_names(project))},
        "annotator": {one.name: one.id for one in browsing.known_annotators(project)},
        "assigned": _people(project),
    }
    return {name: numbers.get(name, {}).get(value, value) for name, value in chosen.items()}


def _people(project: Project) -> dict[str, int]:
    members = Membership.objects.filter(project=project, role=Role.ANNOTATOR)
    return dict(members.values_list("user__username", "user"))


def _row(row: browsing.Row) -> dict[str, Any]:
    waiting = row.query.assigned_to if row.query.state == QueryState.OPEN else None
    return {
        "id": row.query.pk,
        "state": row.query.state,
        "round_number": row.query.round_number,
        "answers": [{"answer": name, "count": number} for name, number in row.answers],
        "annotators": row.people,
        "agreed": row.agreed,
        "reports": [report.kind for report in row.reports],
        "answered_at": row.answered_at,
        "assigned_to": waiting and waiting.get_username(),
        "text": row.shown and row.shown.text,
        "fields": dict(row.shown.fields) if row.shown and row.shown.fields is not None else None,
        "image_url": row.shown and row.shown.image_url,
        "owner_id": row.shown and row.shown.owner_id,
        "metadata": dict(row.shown.metadata) if row.shown and row.shown.metadata is not None else None,
    }


def _event(event: browsing.QuestionEvent) -> dict[str, Any]:
    return {"when": event.when, "who": event.who or None, "what": event.kind, "value": event.value or None}
