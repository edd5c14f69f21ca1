"""REST routes of reviewing: the next question that waits, what is decided about it, and how far the review is."""

from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Schema, Status

from annotation import selectors
from annotation.access import REVIEWERS
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.errors import InvalidChoice
from annotation.models import Query, QueryState, Role
from annotation.people.identity import person_of
from annotation.questions.images import IMAGE_ANSWER
from annotation.questions.selectors import answers
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.review.images import reviewed_image
from annotation.review.selectors import reviewing
from annotation.review.services import reviewing as decisions
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, project_for, require_scope, responses, row_id
from annotation.work.services.tokens import Scope

router = RoomRouter()


class VotesOut(Answer, reads=Reads.REVIEW):
    """How many gave one answer to the question."""

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
    """How many questions somebody decided, and how many wait."""

    reviewed: int
    waiting: int


class Decision(StrEnum):
    """What is decided about a question."""

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
        raise InvalidChoice("Only what is settled can be kept as a check.")
    of_managers = body.decision in DECISIONS_OF_MANAGERS or body.keep_as_check
    project = project_for(request, slug, Scope.LABELS_WRITE, *((Role.MANAGER,) if of_managers else REVIEWERS))
    query = get_object_or_404(Query, project=project, pk=row_id(query_id))
    about: dict[str, Any] = {"project": project, "person": person_of(request), "query_id": query.pk}
    if body.decision == Decision.SKIP:
        decisions.skip_review(**about)
    elif body.decision == Decision.SET_ASIDE:
        decisions.set_aside_reviewed(**about)
    elif body.decision == Decision.RETURN:
        decisions.return_reviewed(**about, comment=body.comment)
    elif body.decision == Decision.SETTLE:
        choice = answers.stored_choice(project, body.choice, body.choices)
        decisions.settle_reviewed(**about, choice=choice, keep_as_check=body.keep_as_check)
    elif body.decision == Decision.ASK:
        decisions.ask_beyond_overlap(project=project, query_id=query.pk)
    elif body.decision == Decision.LEAVE_OUT:
        decisions.leave_out_disputed(project=project, query_id=query.pk)
