"""REST routes of reviewing: the next question that waits, what is decided about it, and how far the review is."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Query, Schema, Status

from annotation import selectors
from annotation.access import REVIEWERS
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.errors import InvalidChoice, InvalidConfiguration
from annotation.models import Membership, Oracle, Project, QueryState, ReportKind, Role
from annotation.models.kinds import Aggregation
from annotation.models.quality import GoldQuery, GoldSource, PauseReason, QualityReport
from annotation.people.identity import person_of
from annotation.questions import selectors as answers
from annotation.questions.api import LabelIn, SpanIn
from annotation.questions.images import IMAGE_ANSWER, image_response
from annotation.questions.selectors import answer_name, answer_names, checks_in_use, may_read_questions
from annotation.questions.services import checks as gold
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.review import selectors as browsing
from annotation.review import selectors as quality
from annotation.review import selectors as reviewing
from annotation.review import services as comparing
from annotation.review import services as decisions
from annotation.review.forms import QuestionFilter
from annotation.review.images import readable_image, reviewed_image
from annotation.review.services import change_chosen
from annotation.work.reads import Answer, Reads
from annotation.work.rest import JobOut, Page, RoomRouter, page_of, project_for, require_scope, responses, row_id
from annotation.work.services.tokens import Scope
from privacy.wording import in_english

router = RoomRouter()


class VotesOut(Answer, reads=Reads.REVIEW):
    """Number of people who gave one answer to the question."""

    answer: str
    people: int


class ReviewOut(Answer, reads=Reads.REVIEW):
    """A question leased to the caller to review, with what was answered, and by nobody named."""

    id: int
    leased_until: datetime
    question: str
    classes: list[str]
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None = Field(
        description="Where the image is, for who is signed in and reviews; with a token it is at `reviews/{id}/image`."
    )
    owner_id: str | None
    metadata: dict[str, str | None] | None
    guess: str | None
    votes: list[VotesOut]
    is_disputed: bool
    is_drawn: bool = Field(description="A coin drew it: what its answers agree on counts once it is decided.")
    agreed: list[int] | None = Field(
        description="Positions of what the answers agree on: sent as the choice, they are accepted; null without a "
        "majority."
    )


class ProgressOut(Answer, reads=Reads.REVIEW):
    """Number of questions somebody decided, and of those that wait."""

    reviewed: int
    waiting: int


class Decision(StrEnum):
    SETTLE = "settle"
    RETURN = "return"
    SET_ASIDE = "set_aside"
    SKIP = "skip"
    ASK = "ask"
    LEAVE_OUT = "leave_out"


# What becomes of a disputed question that nobody decides.
DECISIONS_OF_MANAGERS = frozenset({Decision.ASK, Decision.LEAVE_OUT})


class DecisionIn(Schema):
    """A decision: to settle takes an answer as a label does, to return takes a comment for whoever answered.

    Managers alone have one more person asked about a disputed question, leave it out, or keep it as a check.
    """

    decision: Decision
    choice: int | None = Field(None, ge=0)
    choices: list[Annotated[int, Field(ge=0, lt=MOST_CLASSES)]] | None = None
    spans: list[SpanIn] | None = None
    comment: str = Field("", max_length=MAX_COMMENT_LENGTH)
    keep_as_check: bool = Field(False, description="Whether what is settled is a hidden check from now on.")


@router.get("projects/{slug:slug}/reviews", response=ProgressOut, summary="How far the review is")
def get_review(request: HttpRequest, slug: str) -> Any:
    return reviewing.progress_of(project_for(request, slug, Scope.LABELS_WRITE, *REVIEWERS))


@router.write(
    "projects/{slug:slug}/reviews",
    response={200: ReviewOut, 204: None},
    summary="Claim the next question to review; 204 when none waits",
)
def claim_review(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, *REVIEWERS)
    held = decisions.claim_review(project=project, person=person_of(request))
    if held is None:
        return Status(204, None)
    query = held.query
    shown = selectors.shown_of(
        project, query, image_url=reverse("annotation:review_image", args=[project.slug, query.pk])
    )
    agreed = reviewing.agreed_choice(query)
    return {
        "id": query.pk,
        "leased_until": held.leased_until,
        "question": project.question,
        "classes": answers.answer_names(project),
        **asdict(shown),
        "guess": None if query.guess is None else str(project.classes[query.guess]),
        "votes": [{"answer": name, "people": people} for name, people in reviewing.counted_votes(query)],
        "is_disputed": query.state == QueryState.DISPUTED,
        "is_drawn": query.state == QueryState.IN_REVIEW,
        "agreed": None if agreed is None else list(answers.places_in(project, agreed)),
    }


@router.get(
    "projects/{slug:slug}/reviews/{query_id}/image",
    summary="The image of a question that waits for the caller's review",
    openapi_extra=responses(responses={200: IMAGE_ANSWER}),
)
def get_review_image(request: HttpRequest, slug: str, query_id: str) -> HttpResponse:
    return reviewed_image(request, project_for(request, slug, Scope.LABELS_WRITE, *REVIEWERS), row_id(query_id))


@router.write(
    "projects/{slug:slug}/reviews/undo",
    summary="Take the caller's last decision back; its question is what they claim next",
)
def undo_review(request: HttpRequest, slug: str) -> None:
    project = project_for(request, slug, Scope.LABELS_WRITE, *REVIEWERS)
    decisions.undo_review(project=project, person=person_of(request))


@router.write("projects/{slug:slug}/reviews/{query_id}", summary="Decide about a question")
def decide_review(request: HttpRequest, slug: str, query_id: str, body: DecisionIn) -> None:
    require_scope(request, Scope.LABELS_WRITE)
    if body.keep_as_check and body.decision != Decision.SETTLE:
        raise InvalidChoice(in_english("Only settled questions can become checks."))
    of_managers = body.decision in DECISIONS_OF_MANAGERS or body.keep_as_check
    project = project_for(request, slug, Scope.LABELS_WRITE, *((Role.MANAGER,) if of_managers else REVIEWERS))
    query = get_object_or_404(project.queries, pk=row_id(query_id))
    about: dict[str, Any] = {"project": project, "person": person_of(request), "query_id": query.pk}
    if body.decision == Decision.SKIP:
        decisions.skip_review(**about)
    elif body.decision == Decision.SET_ASIDE:
        decisions.set_aside_reviewed(**about)
    elif body.decision == Decision.RETURN:
        decisions.return_reviewed(**about, comment=body.comment)
    elif body.decision == Decision.SETTLE:
        choice = LabelIn(choice=body.choice, choices=body.choices, spans=body.spans).number(project, query.pk)
        decisions.settle_reviewed(**about, choice=choice, keep_as_check=body.keep_as_check)
    elif body.decision == Decision.ASK:
        decisions.ask_beyond_overlap(project=project, query_id=query.pk)
    elif body.decision == Decision.LEAVE_OUT:
        decisions.leave_out_disputed(project=project, query_id=query.pk)


LARGEST_ID = 2**63 - 1


class QuestionsIn(Schema):
    """Filter of questions; absent fields narrow nothing. People and classes go by their names."""

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
    """Number of times something was answered."""

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
    """Change of questions: `comment` to send back, `person` (a name) to assign."""

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
        raise InvalidConfiguration(in_english("No such class or annotator, or the text is too short."))
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
    # No other number names a row.
    ids = [each for each in body.questions if 0 < each <= LARGEST_ID]
    done = change_chosen(
        project=project,
        query_ids=ids,
        action=body.action,
        comment=body.comment,
        person=person,
        actor=person_of(request).get_username(),
    )
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


class CheckOut(Answer, reads=Reads.MANAGED):
    """A question with a known answer that is shown among the others, and how it was answered."""

    check: int
    question: int
    source: GoldSource
    answer: str
    right: int
    wrong: int
    text: str | None
    fields: dict[str, Any] | None
    has_image: bool = Field(description="Whether it is a picture, which is at `checks/{check}/image`.")
    owner_id: str | None
    metadata: dict[str, str | None] | None


class ChecksIn(Schema):
    """A public upload whose labelled examples become checks."""

    dataset: int = Field(ge=0, le=2**63 - 1)
    most: int = Field(50, ge=1, le=2000)


class ChecksAddedOut(Answer, reads=Reads.MANAGED):
    """Number of new checks."""

    added: int


class AnnotatorOut(Answer, reads=Reads.MANAGED):
    """Outcome of somebody's answers, and their results at hidden checks."""

    membership: int | None = Field(description="Null where they annotate here no more.")
    username: str
    answers: int
    accepted: int
    refused: int
    checks: int
    checks_right: int
    low: float = Field(description="Lower end of the 95 % interval of their accuracy at checks.")
    high: float
    agreement: float | None = Field(description="With the model of the last comparison.")
    is_warned: bool
    paused_at: datetime | None
    pause_reason: str


class PaymentOut(Answer, reads=Reads.MANAGED):
    """Amount somebody is to be paid by accepted answers, as text, so that nobody rounds it."""

    username: str
    answers: int
    accepted: int
    refused: int
    undecided: int
    price: str | None = Field(description="For one accepted answer; null where the project names none.")
    amount: str | None
    currency: str


class OpinionsIn(Page):
    """Beginning of a page of opinions."""

    after: int = Field(0, ge=0, le=2**63 - 1, description="Only questions with a larger number.")


class OpinionOut(Answer, reads=Reads.MANAGED):
    """Class of a question by the last comparison, and how likely that is right by its model."""

    question: int
    owner_id: str | None
    answer: str
    probability: float
    method: Aggregation


class OwnStatisticsOut(Answer, reads=Reads.OWN_WORK):
    """Figures of the caller's work and its outcome; checks move in steps of five."""

    answered_today: int
    answered_in_seven_days: int
    answers: int
    accepted: Annotated[int | None, Reads.TRUSTED] = Field(
        description="Null in front of a crowd, like what was refused or is undecided."
    )
    refused: Annotated[int | None, Reads.TRUSTED]
    undecided: Annotated[int | None, Reads.TRUSTED]
    skipped: int
    seconds: float | None = Field(description="For an answer on average in seven days, to a tenth.")
    checks: int
    checks_right: int
    low: float = Field(description="Lower end of the 95 % interval of the accuracy at checks.")
    high: float
    is_warned: bool
    is_paused: bool
    pause_reason: PauseReason | None
    earned: str | None = Field(description="By accepted answers, as a text; null where the project names no price.")
    currency: str


class AgreementOut(Answer, reads=Reads.MANAGED):
    """The last comparison of all answers, and the work that makes it."""

    method: str
    answers: int
    questions: int
    alpha: float | None = Field(description="How far answers agree, by the coefficient of the quality page.")
    made_at: datetime | None
    job: JobOut


@router.pages(
    "projects/{slug:slug}/checks",
    response=list[CheckOut],
    summary="Hidden checks in use, those answered wrongly most often first",
)
def list_checks(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [_check(one) for one in page_of(checks_in_use(project), page, request=request, response=response)]


@router.write(
    "projects/{slug:slug}/checks",
    response={201: ChecksAddedOut},
    summary="Make hidden checks from labelled public examples",
)
def add_checks(request: HttpRequest, slug: str, body: ChecksIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    dataset = project.datasets.filter(pk=body.dataset).first()
    if dataset is None:
        raise InvalidConfiguration("Choose a public upload with labels.")
    added = gold.add_public_checks(project=project, dataset=dataset, owner=person_of(request), most=body.most)
    return {"added": added}


@router.remove(
    "projects/{slug:slug}/checks/{check_id}",
    summary="Show a check to nobody any more; answers to it count against nobody",
)
def retire_check(request: HttpRequest, slug: str, check_id: str) -> None:
    gold.retire_check(check=_found_check(request, slug, check_id, Scope.PROJECTS_WRITE))


@router.get(
    "projects/{slug:slug}/checks/{check_id}/image",
    summary="The picture that a hidden check is about",
    openapi_extra=responses(responses={200: IMAGE_ANSWER}),
)
def get_check_image(request: HttpRequest, slug: str, check_id: str) -> HttpResponse:
    return image_response(_found_check(request, slug, check_id, Scope.LABELS_READ).query.record)


@router.get(
    "projects/{slug:slug}/annotators", response=list[AnnotatorOut], summary="Everybody's answers and their checks"
)
def list_annotators(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "membership": sheet.membership.pk,
            "username": sheet.membership.user.get_username(),
            "answers": sheet.answers,
            "accepted": sheet.accepted,
            "refused": sheet.refused,
            "checks": sheet.checks.answered,
            "checks_right": sheet.checks.right,
            "low": sheet.checks.low,
            "high": sheet.checks.high,
            "agreement": sheet.skill,
            "is_warned": gold.is_warned(project, sheet.checks),
            "paused_at": sheet.membership.paused_at,
            "pause_reason": sheet.membership.pause_reason,
        }
        for sheet in quality.annotators_work(project)
    ]


@router.pages(
    "projects/{slug:slug}/payments", response=list[PaymentOut], summary="Who is to be paid what, by accepted answers"
)
def list_payments(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "username": sheet.membership.user.get_username(),
            "answers": sheet.answers,
            "accepted": sheet.accepted,
            "refused": sheet.refused,
            "undecided": sheet.waiting,
            "price": _money(project.price_per_label),
            "amount": _money(sheet.earned(project.price_per_label)),
            "currency": project.currency,
        }
        for sheet in page_of(quality.payments_of(project), page, request=request, response=response)
    ]


@router.get(
    "projects/{slug:slug}/statistics",
    response=OwnStatisticsOut,
    summary="What the caller answered, how they did at checks, and what they earned",
)
def get_own_statistics(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    own = quality.own_statistics(project=project, user=person_of(request))
    sheet, checks, member = own.sheet, own.sheet.checks, own.sheet.membership
    known = project.oracle == Oracle.TRUSTED
    return {
        "answered_today": own.today,
        "answered_in_seven_days": own.week,
        "answers": sheet.answers,
        "accepted": sheet.accepted if known else None,
        "refused": sheet.refused if known else None,
        "undecided": sheet.waiting if known else None,
        "skipped": own.skipped,
        "seconds": None if own.seconds is None else round(own.seconds, 1),
        "checks": checks.answered,
        "checks_right": checks.right,
        "low": checks.low,
        "high": checks.high,
        "is_warned": gold.is_warned(project, checks),
        "is_paused": member.paused_at is not None,
        "pause_reason": member.pause_reason or None,
        "earned": _money(own.earned),
        "currency": project.currency,
    }


@router.write(
    "projects/{slug:slug}/members/{membership_id}/pause",
    summary="Ask an annotator nothing further; what they hold they may still answer",
)
def pause_member(request: HttpRequest, slug: str, membership_id: str) -> None:
    membership = _annotator(request, slug, membership_id, Scope.PROJECTS_WRITE)
    gold.pause_member(membership=membership, reason=PauseReason.MANAGER)


@router.remove(
    "projects/{slug:slug}/members/{membership_id}/pause",
    summary="Let an annotator go on; checks from before no longer count against them",
)
def resume_member(request: HttpRequest, slug: str, membership_id: str) -> None:
    gold.resume_member(membership=_annotator(request, slug, membership_id, Scope.PROJECTS_WRITE))


@router.get("projects/{slug:slug}/agreement", response=AgreementOut, summary="The last comparison of all answers")
def get_agreement(request: HttpRequest, slug: str) -> Any:
    return get_object_or_404(
        QualityReport.objects.select_related("job"), project=project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    )


@router.write(
    "projects/{slug:slug}/agreement",
    response={202: AgreementOut},
    summary="Have a worker compare all answers as they stand",
)
def compare_answers(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return comparing.start_report(project=project, owner=person_of(request))


@router.pages(
    "projects/{slug:slug}/opinions",
    response=list[OpinionOut],
    summary="What the last comparison takes each question for",
)
def list_opinions(request: HttpRequest, response: HttpResponse, slug: str, page: Query[OpinionsIn]) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    found = quality.opinions_of(project).filter(query__gt=page.after)
    return [
        {
            "question": opinion.query_id,
            "owner_id": opinion.owner_id,
            "answer": answer_name(project, opinion.choice),
            "probability": opinion.probability,
            "method": opinion.report.method,
        }
        for opinion in page_of(found, page, request=request, response=response)
    ]


def _found_check(request: HttpRequest, slug: str, check_id: str, scope: Scope) -> GoldQuery:
    checks = GoldQuery.objects.filter(query__project=project_for(request, slug, scope, Role.MANAGER))
    return get_object_or_404(checks.select_related("query__record__dataset"), pk=row_id(check_id))


def _annotator(request: HttpRequest, slug: str, membership_id: str, scope: Scope) -> Membership:
    annotators = Membership.objects.filter(project=project_for(request, slug, scope, Role.MANAGER), role=Role.ANNOTATOR)
    return get_object_or_404(annotators, pk=row_id(membership_id))


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _check(one: Any) -> dict[str, Any]:
    project = one.query.project
    shown = selectors.shown_of(project, one.query, image_url="image")
    return {
        "check": one.pk,
        "question": one.query_id,
        "source": one.source,
        "answer": answer_name(project, one.choice),
        "right": one.answered - one.wrong,
        "wrong": one.wrong,
        "has_image": bool(shown.image_url),
        **asdict(shown),
    }
