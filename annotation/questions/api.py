"""REST routes for annotators: claim, answer, skip, flag and change answers."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from ninja import Field, File, Form, Query, Schema, Status, UploadedFile

from annotation import selectors
from annotation.choices.classes import grouped, looks_of, merged_names
from annotation.choices.label_types.base import NamesSeveral
from annotation.choices.label_types.class_sets import MOST_CLASSES
from annotation.errors import AnnotationError, InvalidChoice
from annotation.models import Assignment, Label, Project, ReportKind, Role
from annotation.models.questions import MOST_CLAIMED, GuidelinePicture
from annotation.people.identity import person_of
from annotation.questions import selectors as answers
from annotation.questions import selectors as own_answers
from annotation.questions.class_list import listed_classes
from annotation.questions.forms import MAX_EXAMPLES
from annotation.questions.guidelines import NAME_LENGTH, current_guidelines, snippet_of
from annotation.questions.images import IMAGE_ANSWER, held_image
from annotation.questions.selectors import own_words, questions_set_aside, reports_of, reports_on_others
from annotation.questions.services import correcting, flags, guidelines, labels, queue
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.questions.services.spans import number_of_program
from annotation.work.reads import Answer, Reads
from annotation.work.rest import AsCode, RoomRouter, own_assignment, project_for, responses, row_id
from annotation.work.services.tokens import Scope
from dpal.spans.text import Span
from privacy.wording import as_message

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


class SpanIn(Schema):
    """Span of a text: characters `start` to `end` (excluded), code points, and its type, one of the classes."""

    start: int = Field(ge=0)
    end: int
    type: str


class LabelIn(Schema):
    """An answer: the position of the class in the project's list, or where several may be named their positions."""

    choice: int | None = Field(None, ge=0)
    choices: list[Annotated[int, Field(ge=0, lt=MOST_CLASSES)]] | None = Field(
        None, description="Positions of all classes that are named, none of them twice; an empty list for none of them."
    )
    spans: list[SpanIn] | None = Field(None, description="All spans of the text, where spans are marked.")

    def number(self, project: Project, query_id: int) -> int:
        spans = None if self.spans is None else [Span(one.start, one.end, one.type) for one in self.spans]
        return number_of_program(project, query_id, choice=self.choice, choices=self.choices, spans=spans)


class SkipIn(Schema):
    """Reason for not answering a question."""

    reason: str = Field("", max_length=200)


class SpanOut(Answer, reads=Reads.OWN_WORK):
    """Span of a text: characters `start` to `end` (excluded), code points, and its type."""

    start: int
    end: int
    type: str


class LabelOut(Answer, reads=Reads.OWN_WORK):
    """A stored answer, under the id of its assignment: gaps in row numbers would tell the pace of other projects."""

    id: UUID = Field(alias="assignment_id")
    choice: int | None = Field(None, description="Position of the class; null where several may be named.")
    choices: list[int] | None = Field(None, description="Positions of the classes where several may be named.")
    spans: list[SpanOut] | None = Field(None, description="Spans of the text where spans are marked.")
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
    kind, question = answers.label_type(project), selectors.question_of(assignment)
    suggestion = answers.suggestion_of(assignment, question.text)
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
        **asdict(question),
    )


class BatchIn(Schema):
    """Number of questions to hold at once."""

    most: int = Field(MOST_CLAIMED, ge=1, le=MOST_CLAIMED)


@router.write(
    "projects/{slug:slug}/assignments/batch",
    response=list[AssignmentOut],
    summary="Claim up to 50 questions; those held from an earlier batch come again",
)
def claim_batch(request: HttpRequest, slug: str, body: BatchIn) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    claimed = queue.claim_several(project=project, user=person_of(request), most=body.most)
    return [assignment_out(assignment) for assignment in claimed]


class BatchAnswerIn(LabelIn):
    """An answer to one question of a batch."""

    assignment: UUID


class BatchAnswersIn(Schema):
    """Answers to questions of one project."""

    answers: list[BatchAnswerIn] = Field(max_length=MOST_CLAIMED)


class BatchAnswerOut(Answer, reads=Reads.OWN_WORK):
    """Result of an answer; `error` says why it was not stored."""

    assignment: UUID
    error: str
    error_as_code: AsCode = Field(None, alias="error")


@router.write(
    "projects/{slug:slug}/assignments/answers",
    response=list[BatchAnswerOut],
    summary="Answer up to 50 questions; each is stored or refused by itself",
)
def answer_batch(request: HttpRequest, slug: str, body: BatchAnswersIn) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    held = selectors.assignments_of(person_of(request)).filter(project=project)
    found = held.in_bulk([answer.assignment for answer in body.answers])
    return [
        {"assignment": answer.assignment, "error": _answered(found.get(answer.assignment), answer)}
        for answer in body.answers
    ]


def _answered(assignment: Assignment | None, answer: BatchAnswerIn) -> str:
    if assignment is None:
        return as_message("Assignment {pk} is no longer yours.", pk=answer.assignment)
    try:
        choice = answer.number(assignment.project, assignment.query_id)
        labels.submit_label(assignment=assignment, choice=choice)
    except AnnotationError as error:
        return str(error)
    return ""


@router.write("assignments/{assignment_id}/label", response=LabelOut, summary="Answer a question")
def label_assignment(request: HttpRequest, assignment_id: UUID, body: LabelIn) -> Any:
    assignment = own_assignment(request, assignment_id, Scope.LABELS_WRITE)
    stored = labels.submit_label(assignment=assignment, choice=body.number(assignment.project, assignment.query_id))
    return label_out(assignment.project, stored)


def label_out(project: Project, stored: Label) -> dict[str, Any]:
    return {
        "assignment_id": stored.assignment_id,
        **said_to_program(project, stored.choice or 0),
        "created_at": stored.created_at,
    }


def said_to_program(project: Project, choice: int) -> dict[str, Any]:
    spans, several = answers.marks_spans(project), answers.names_several(project)
    return {
        "choice": None if spans or several else choice,
        "choices": list(answers.places_in(project, choice)) if several else None,
        "spans": answers.spans_of(project, [choice])[choice] if spans else None,
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
    """Fault of a question, with a comment if somebody wants to say more."""

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
    spans: list[SpanOut] | None
    created_at: datetime
    may_change: bool


class OwnAnswersOut(Answer, reads=Reads.OWN_WORK):
    """A page of the caller's answers, newest first, and where the next page begins; null on the last."""

    answers: list[OwnAnswerOut]
    before: int | None


class OwnAnswersIn(Schema):
    """Beginning of a page of answers."""

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
    return {"answers": [_answer(project, one) for one in found.answers], "before": found.before}


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
        choice=body.number(own.project, own.query_id),
    )
    return label_out(own.project, stored)


def _answer(project: Project, one: own_answers.OwnAnswer) -> dict[str, Any]:
    return {
        "assignment": one.label.assignment_id,
        **asdict(one.question),
        "guess": one.guess,
        "answer": one.name,
        **said_to_program(project, one.label.choice or 0),
        "created_at": one.label.created_at,
        "may_change": one.may_change,
    }


class ReportOut(Answer, reads=Reads.MANAGED):
    """An annotator's report about a question that no manager has settled."""

    report: int = Field(alias="pk")
    question: int = Field(alias="query_id")
    annotator: str = Field(alias="annotator.username")
    kind: ReportKind
    comment: str
    created_at: datetime


class SkippedOut(Answer, reads=Reads.MANAGED):
    """Number of people who gave a question back for one reason."""

    reason: str
    people: int


class SetAsideOut(Answer, reads=Reads.MANAGED):
    """A question out of the queue, and why; its text for those alone who may read what questions show."""

    question: int
    round: int
    text: str | None
    skipped: list[SkippedOut]
    reports: list[ReportOut]


class SetAsideDecisionIn(Schema):
    """Decision to ask a question again that was set aside, or to leave it out for good."""

    decision: Literal["ask", "leave_out"] = Field(description="What was reported about it is settled either way.")


@router.get(
    "projects/{slug:slug}/set-aside",
    response=list[SetAsideOut],
    summary="Questions nobody gets further with, the oldest 200",
)
def list_set_aside(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return [
        {
            "question": one.query.pk,
            "round": one.query.round_number,
            "text": one.text,
            "skipped": [{"reason": reason, "people": people} for reason, people in one.reasons],
            "reports": one.reports,
        }
        for one in questions_set_aside(project, person_of(request))
    ]


@router.write(
    "projects/{slug:slug}/set-aside/{query_id}", summary="Have a question asked again, or leave it out for good"
)
def decide_set_aside(request: HttpRequest, slug: str, query_id: str, body: SetAsideDecisionIn) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    change = flags.ask_set_aside_again if body.decision == "ask" else flags.leave_out_set_aside
    try:
        change(project=project, query_id=row_id(query_id) or 0, user=person_of(request))
    except ObjectDoesNotExist as absent:
        raise Http404 from absent


@router.get(
    "projects/{slug:slug}/reports",
    response=list[ReportOut],
    summary="What annotators say about other questions, the oldest 200",
)
def list_reports(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    return reports_on_others(project)


@router.remove("projects/{slug:slug}/reports/{report_id}", summary="Take a report off the list; it stays stored")
def resolve_report(request: HttpRequest, slug: str, report_id: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    report = get_object_or_404(project.reports, pk=row_id(report_id))
    flags.resolve_report(project=project, report_id=report.pk, user=person_of(request))


class CommentOut(ReportOut):
    """An annotator's comment on a question, or with `returned` a request to look at it again, and its outcome."""

    resolved_at: datetime | None = Field(None, description="When a manager settled it, or the annotator looked again.")
    reply: str
    read_at: datetime | None = Field(None, description="When the annotator read the reply.")


class OwnCommentOut(Answer, reads=Reads.OWN_WORK):
    """The caller's comment on a question, or one sent back, with a manager's reply; no manager is named."""

    assignment: UUID
    kind: ReportKind
    text: str
    created_at: datetime
    reply: str
    is_unread: bool = Field(description="Whether a manager wrote here and the caller has not read it.")


class CommentIn(Schema):
    """Comment in plain text."""

    text: str = Field(min_length=1, max_length=MAX_COMMENT_LENGTH)


@router.write("projects/{slug:slug}/reports/{report_id}", summary="Reply to what an annotator said, which settles it")
def reply_to_report(request: HttpRequest, slug: str, report_id: str, body: CommentIn) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    report = get_object_or_404(project.reports, pk=row_id(report_id))
    flags.reply(project=project, report_id=report.pk, text=body.text, author=person_of(request))


@router.get(
    "projects/{slug:slug}/questions/{query_id}/comments",
    response=list[CommentOut],
    summary="What was said about a question, oldest first",
)
def list_comments(request: HttpRequest, slug: str, query_id: str) -> Any:
    project = project_for(request, slug, Scope.LABELS_READ, Role.MANAGER)
    query = get_object_or_404(selectors.asked_questions(project), pk=row_id(query_id))
    return reports_of(project, query.pk)


@router.get(
    "projects/{slug:slug}/comments",
    response=list[OwnCommentOut],
    summary="What the caller said about questions and managers wrote back, the newest 200, newest first",
)
def list_own_comments(request: HttpRequest, slug: str, unread: bool = False) -> Any:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    return [
        {
            "assignment": assignment,
            "kind": said.kind,
            "text": said.comment,
            "created_at": said.created_at,
            "reply": said.reply,
            "is_unread": said.is_unread,
        }
        for assignment, said in own_words(project, person_of(request).pk, unread=unread)
    ]


@router.write("assignments/{assignment_id}/comments", summary="Tell the managers something about a question")
def comment_on_assignment(request: HttpRequest, assignment_id: UUID, body: CommentIn) -> None:
    flags.comment_on(assignment=own_assignment(request, assignment_id, Scope.LABELS_WRITE), comment=body.text)


@router.write(
    "assignments/{assignment_id}/comments/read",
    summary="Mark as read what managers wrote about a question; what came back waits while it may be changed",
)
def mark_comments_read(request: HttpRequest, assignment_id: UUID) -> None:
    flags.mark_read(assignment=own_assignment(request, assignment_id, Scope.LABELS_WRITE))


LONGEST_EXAMPLE, LONGEST_GUIDELINES = 2000, 200_000


class GuidelineExampleIn(Schema):
    """A made-up text, never one from the pool, with the position of its class and why it belongs there."""

    text: str = Field(min_length=1, max_length=LONGEST_EXAMPLE, pattern=r"^[^|\n\r]+$")
    choice: int = Field(ge=0)
    reason: str = Field("", max_length=LONGEST_EXAMPLE, pattern=r"^[^\n\r]*$")


class GuidelinesIn(Schema):
    """Instructions to annotators, as Markdown, with made-up examples."""

    text: str = Field(max_length=LONGEST_GUIDELINES)
    examples: list[GuidelineExampleIn] = Field([], max_length=MAX_EXAMPLES)


class GuidelineExampleOut(Answer, reads=Reads.GUIDELINES):
    """A made-up text with the position of its class and why it belongs there."""

    text: str
    choice: int
    reason: str


class ClassMeaningOut(Answer, reads=Reads.GUIDELINES):
    """Description of a class by its managers, and examples of it."""

    name: str
    words: list[str]
    examples: list[str]


class GuidelinesOut(Answer, reads=Reads.GUIDELINES):
    """The version that stands, and the classes of which managers say what they mean."""

    version: int
    text: str
    examples: list[GuidelineExampleOut]
    classes: list[ClassMeaningOut]


class GuidelinesSavedOut(Answer, reads=Reads.MANAGED):
    """The number of the version that stands now; the same words again are the version that stood."""

    version: int


@router.get(
    "projects/{slug:slug}/guidelines", response=GuidelinesOut, summary="What annotators are told, as they read it"
)
def get_guidelines(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    standing = current_guidelines(project)
    described = listed_classes(tuple(project.classes), tuple(project.settings.get("class_descriptions") or ()))
    return {
        "version": standing.version,
        "text": standing.text,
        "examples": standing.examples,
        "classes": [one for one in described if one.description_lines],
    }


@router.write(
    "projects/{slug:slug}/guidelines",
    response=GuidelinesSavedOut,
    summary="Write a version of the guidelines; annotators are told of it once",
)
def write_guidelines(request: HttpRequest, slug: str, body: GuidelinesIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    possible = len(project.classes)
    if any(one.choice >= possible for one in body.examples):
        raise InvalidChoice(as_message("There are {possible} answers to choose from.", possible=possible))
    examples = [one.dict() for one in body.examples]
    saved = guidelines.save_guidelines(project=project, text=body.text, examples=examples, author=person_of(request))
    return {"version": saved.version}


@router.write("projects/{slug:slug}/guidelines/read", summary="Note that the caller knows the version that stands")
def read_guidelines(request: HttpRequest, slug: str) -> None:
    project = project_for(request, slug, Scope.LABELS_WRITE, Role.ANNOTATOR)
    guidelines.mark_guidelines_seen(project=project, user=person_of(request))


class GuidelinePictureIn(Schema):
    """Text that stands for a picture where it cannot be seen."""

    description: str = Field(min_length=1, max_length=guidelines.LONGEST_DESCRIPTION)


class GuidelinePictureOut(Answer, reads=Reads.MANAGED):
    """A picture of the guidelines, and what is written into them to show it."""

    digest: str = Field(description="SHA-256 of the picture as it is kept, in hexadecimal digits.")
    description: str
    width: int
    height: int
    markdown: str
    added_at: datetime

    @staticmethod
    def resolve_markdown(picture: GuidelinePicture) -> str:
        return snippet_of(picture.digest[:NAME_LENGTH], picture.description)


@router.get(
    "projects/{slug:slug}/guidelines/pictures", response=list[GuidelinePictureOut], summary="Pictures of the guidelines"
)
def list_guideline_pictures(request: HttpRequest, slug: str) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)
    return project.guideline_pictures.order_by("pk")


@router.write(
    "projects/{slug:slug}/guidelines/pictures",
    response=GuidelinePictureOut,
    summary="Keep a picture for the guidelines, without its metadata",
    problems=(409, 503),
)
def add_guideline_picture(
    request: HttpRequest, slug: str, file: File[UploadedFile], form: Form[GuidelinePictureIn]
) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    data = file.read(guidelines.LARGEST_FILE + 1)
    return guidelines.add_guideline_picture(
        project=project, data=data, description=form.description, by=person_of(request)
    )


@router.get(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="A picture of the guidelines, by its digest or by the name that shows it, for who is asked or reviews",
    openapi_extra=responses(responses={200: {"description": "The picture", "content": {"image/webp": {}}}}),
)
def get_guideline_picture(request: HttpRequest, slug: str, digest: str) -> HttpResponse:
    project = project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER, Role.ANNOTATOR, Role.REVIEWER)
    named = {"digest__startswith": digest} if len(digest) == NAME_LENGTH else {"digest": digest}
    return HttpResponse(
        guidelines.picture_content(get_object_or_404(project.guideline_pictures, **named)), content_type="image/webp"
    )


@router.remove(
    "projects/{slug:slug}/guidelines/pictures/{digest}",
    summary="Delete a picture that the guidelines do not show",
    problems=(),
)
def delete_guideline_picture(request: HttpRequest, slug: str, digest: str) -> None:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    guidelines.delete_guideline_picture(picture=get_object_or_404(project.guideline_pictures, digest=digest))
