"""REST routes for annotators: claim, answer, skip, flag and change answers."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema, Status

from annotation import selectors
from annotation.choices.class_looks import grouped, looks_of
from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.choices.merged_classes import merged_names
from annotation.models import Assignment, Label, Project, ReportKind, Role
from annotation.people.identity import person_of
from annotation.questions.images import IMAGE_ANSWER, held_image
from annotation.questions.selectors import answers, own_answers
from annotation.questions.services import correcting, flags, labels, queue
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, own_assignment, project_for, responses
from annotation.work.services.tokens import Scope

router = RoomRouter()


class ClassGroupOut(Answer, reads=Reads.TASK):
    """A heading and the positions of the classes under it; those without a group stand under an empty one, last."""

    name: str
    classes: list[int]


class AssignmentOut(Answer, reads=Reads.TASK):
    """A question leased to the caller.

    Where `guess` names a class, the question is whether it is right, and `classes` are the two answers to that.
    Where `most_classes` is a number, an answer names up to so many of the classes.
    """

    id: Annotated[UUID, Reads.OWN_WORK]
    leased_until: Annotated[datetime, Reads.OWN_WORK]
    question: str
    classes: list[str]
    most_classes: int | None = Field(None, description="How many classes an answer may name; null where it is one.")
    none_allowed: bool = Field(False, description="Whether an answer may name none of them.")
    guess: Annotated[str | None, Reads.GUESSED]
    suggestion: Annotated[str | None, Reads.GUESSED] = Field(
        None, description="What the newest released model takes it for, where it is shown."
    )
    suggestion_percent: Annotated[int | None, Reads.GUESSED] = Field(None, description="How sure the model is of that.")
    text: Annotated[str | None, Reads.ASKED]
    fields: Annotated[dict[str, Any] | None, Reads.ASKED]
    image_url: Annotated[str | None, Reads.ASKED] = Field(
        description="Where the image is for who is signed in and asked; with a token it is at `assignments/{id}/image`."
    )
    class_groups: list[ClassGroupOut] = Field(
        [], description="Headings with the positions of their classes, where the project groups them."
    )
    class_colours: dict[str, str] = Field({}, description="Names of colours by class, where the project has any.")
    class_keys: dict[str, str] = Field(
        {}, description="Letters and digits by class, where the project gives any of them a key of its own."
    )
    merged: dict[str, str] = Field(
        {}, description="Classes that are not offered any more, each with the one it counts as; positions stay."
    )
    owner_id: Annotated[str | None, Reads.TRUSTED] = Field(
        None, description="The owner's id of the record, where one was declared."
    )
    metadata: Annotated[dict[str, str | None] | None, Reads.TRUSTED] = Field(
        None, description="Columns the owner declared to be shown beside the record; null behind a gate."
    )


class LabelIn(Schema):
    """An answer: the position of the class in the project's list, or where several may be named their positions."""

    choice: int | None = Field(None, ge=0)
    choices: list[Annotated[int, Field(ge=0, lt=MOST_CLASSES)]] | None = Field(
        None, description="Positions of all classes that are named, none of them twice; an empty list for none of them."
    )


class SkipIn(Schema):
    """Why a question is not answered."""

    reason: str = Field("", max_length=200)


class LabelOut(Answer, reads=Reads.OWN_WORK):
    """A stored answer, under the id of its assignment.

    Numbers of rows are given out over all projects: whoever answers in one could count by their gaps, second by second,
    what is answered in another that hides it.
    """

    id: UUID = Field(alias="assignment_id")
    choice: int | None = Field(None, description="Position of the class; null where several may be named.")
    choices: list[int] | None = Field(None, description="Positions of the classes where several may be named.")
    created_at: datetime


@router.write(
    "projects/{slug:slug}/assignments",
    response={200: AssignmentOut, 204: None},
    summary="Claim the next question; 204 when there is none",
)
def claim_assignment(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    assignment = queue.claim_next(project=project, user=person_of(request))
    if assignment is None:
        return Status(204, None)
    return assignment_out(assignment)


def assignment_out(assignment: Assignment) -> AssignmentOut:
    project = assignment.project
    kind, suggestion = answers.label_type(project), selectors.suggestion_of(assignment)
    # A yes or no, and a step of a scale, have neither.
    looks = looks_of(project.settings, project.classes) if kind.lists_classes else ()
    groups = [(heading, list(places)) for heading, places in grouped(looks)]
    return AssignmentOut(
        id=assignment.id,
        leased_until=assignment.leased_until,
        question=project.question,
        classes=answers.answer_names(project),
        most_classes=kind.most_classes if isinstance(kind, NamesSeveral) else None,
        none_allowed=isinstance(kind, NamesSeveral) and kind.names_none,
        guess=selectors.guess_of(assignment),
        suggestion=None if suggestion is None else suggestion.name,
        suggestion_percent=None if suggestion is None else suggestion.percent,
        class_groups=[ClassGroupOut(name=name, classes=places) for name, places in groups if name or len(groups) > 1],
        class_colours={str(project.classes[place]): one.colour for place, one in enumerate(looks) if one.colour},
        class_keys={str(project.classes[place]): one.key for place, one in enumerate(looks) if one.key},
        merged=merged_names(project.merged_classes),
        **asdict(selectors.question_of(assignment)),
    )


@router.write("assignments/{assignment_id}/label", response=LabelOut, summary="Answer a question")
def label_assignment(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    assignment = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    stored = labels.submit_label(
        assignment=assignment, choice=answers.stored_choice(assignment.project, body.choice, body.choices)
    )
    return label_out(assignment.project, stored)


def label_out(project: Project, stored: Label) -> dict[str, Any]:
    takes_several = answers.names_several(project)
    return {
        "assignment_id": stored.assignment_id,
        "choice": None if takes_several else stored.choice,
        "choices": list(answers.places_in(project, stored.choice or 0)) if takes_several else None,
        "created_at": stored.created_at,
    }


@router.write("assignments/{assignment_id}/skip", summary="Give a question back")
def skip_assignment(request: HttpRequest, assignment_id: UUID, body: SkipIn) -> None:
    labels.skip_assignment(assignment=own_assignment(request, assignment_id, Scope.LABELS_WRITE), reason=body.reason)


@router.get(
    "assignments/{assignment_id}/image",
    summary="The image of a question that the caller holds or held",
    openapi_extra=responses(responses={200: IMAGE_ANSWER}),
)
def get_assignment_image(request: HttpRequest, assignment_id: UUID) -> HttpResponse:
    return held_image(own_assignment(request, assignment_id, Scope.LABELS_WRITE))


class FlagIn(Schema):
    """What is wrong with a question, and more if somebody wants to say it."""

    kind: Literal["broken", "sensitive"] = Field(
        description="Broken: it cannot be read or shown. Sensitive: nobody should see it."
    )
    comment: str = Field("", max_length=flags.MAX_COMMENT_LENGTH)


class OwnAnswerOut(Answer, reads=Reads.OWN_WORK):
    """An answer of the caller's, with the question it was given to."""

    assignment: UUID
    text: str | None
    fields: dict[str, Any] | None
    image_url: str | None = Field(description="With a token the image is at `assignments/{id}/image`.")
    owner_id: Annotated[str | None, Reads.TRUSTED]
    metadata: Annotated[dict[str, str | None] | None, Reads.TRUSTED]
    guess: str | None
    answer: str
    choice: int | None
    choices: list[int] | None
    created_at: datetime
    may_change: bool


class OwnAnswersOut(Answer, reads=Reads.OWN_WORK):
    """A page of the caller's answers, newest first, and where the next page begins; null on the last."""

    answers: list[OwnAnswerOut]
    before: int | None


class OwnAnswersIn(Schema):
    """Where a page of answers begins."""

    before: int | None = Field(None, ge=1, le=2**63 - 1)
    unread: bool = Field(False, description="Those alone about which managers wrote something unread.")


@router.write(
    "projects/{slug:slug}/assignments/undo",
    response={200: AssignmentOut, 204: None},
    summary="Take back one's last answer, skip or flag, and hold its question again; 204 where it waits",
)
def undo_last(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    correcting.undo_last(project=project, user=person_of(request))
    held = queue.claim_next(project=project, user=person_of(request))
    return Status(204, None) if held is None else assignment_out(held)


@router.write(
    "assignments/{assignment_id}/flag", summary="Report a question as broken or sensitive instead of answering it"
)
def flag_assignment(request: HttpRequest, assignment_id: UUID, body: FlagIn) -> None:
    assignment = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    flags.flag_question(assignment=assignment, kind=ReportKind(body.kind), comment=body.comment)


@router.get(
    "projects/{slug:slug}/answers", response=OwnAnswersOut, summary="The caller's own answers, and which may be changed"
)
def list_own_answers(request: HttpRequest, slug: str, page: Query[OwnAnswersIn]) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    found = own_answers.own_answers(project, person_of(request), before=page.before, unread=page.unread)
    takes_several = answers.names_several(project)
    return {"answers": [_answer(one, takes_several=takes_several) for one in found.answers], "before": found.before}


@router.write(
    "assignments/{assignment_id}/correction",
    response=LabelOut,
    summary="Put another answer in the place of one's own, or confirm it",
)
def correct_answer(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    own = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    stored = correcting.correct_answer(
        project=own.project,
        user=person_of(request),
        query_id=own.query_id,
        choice=answers.stored_choice(own.project, body.choice, body.choices),
    )
    return label_out(own.project, stored)


def _answer(one: own_answers.OwnAnswer, *, takes_several: bool) -> dict[str, Any]:
    return {
        "assignment": one.label.assignment_id,
        **asdict(one.question),
        "guess": one.guess,
        "answer": one.name,
        "choice": None if takes_several else one.label.choice,
        "choices": list(one.places) if takes_several else None,
        "created_at": one.label.created_at,
        "may_change": one.may_change,
    }
