"""Flags and comments on questions, and setting questions aside."""

from collections.abc import Sequence
from unicodedata import category

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now

from annotation import access, selectors
from annotation.errors import AlreadyLabelled, InvalidConfiguration
from annotation.models import (
    Assignment,
    AssignmentState,
    Membership,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
)
from annotation.questions import selectors as flags
from annotation.work.services import jobs, looks
from privacy.choices import Kind
from privacy.wording import in_english

ANSWERED_OR_SKIPPED = (AssignmentState.LABELLED, AssignmentState.SKIPPED)
# A machine that could not answer says nothing about the question.
MACHINE_SKIPPED = "no class named"
HOLDING_A_SLOT = (AssignmentState.LABELLED, AssignmentState.LEASED)


def set_aside_if_nobody_answers(*, project: Project, query: Query) -> bool:
    """Set a question aside once enough people skipped it; call it with the row locked."""
    if query.state != QueryState.OPEN:
        return False
    skips = Assignment.objects.filter(query=query.pk, state=AssignmentState.SKIPPED)
    skipped = skips.exclude(skip_reason=MACHINE_SKIPPED).count()
    if skipped < project.skips_to_set_aside and _somebody_is_left(project, query):
        return False
    set_aside(project=project, query=query)
    return True


def _somebody_is_left(project: Project, query: Query) -> bool:
    done = Assignment.objects.filter(query=query.pk, annotator=OuterRef("user"), state__in=ANSWERED_OR_SKIPPED)
    return Membership.objects.filter(~Exists(done), project=project.pk, role=Role.ANNOTATOR).exists()


def set_aside(*, project: Project, query: Query) -> None:
    """Take an open question out of the queue; call it with the row locked. Leases stay."""
    Query.objects.filter(pk=query.pk, state=QueryState.OPEN).update(state=QueryState.SET_ASIDE, open_slots=0)
    jobs.send_project_changed(project.pk)


def set_aside_chosen(*, project: Project, query_ids: Sequence[int]) -> list[int]:
    if project.settings.get(Kind.RANDOMIZER.key):
        # Which questions get a response would follow what was answered, and nobody charged for that.
        raise InvalidConfiguration("With randomised answers only annotators can set questions aside.")
    with transaction.atomic():
        chosen = Query.objects.select_for_update(no_key=True).filter(
            project=project, pk__in=query_ids, state=QueryState.OPEN
        )
        found = list(chosen.order_by("pk"))
        for query in found:
            set_aside(project=project, query=query)
    return [query.pk for query in found]


def end_leases(*, query: Query) -> None:
    """End all leases of a question; call it with the row locked."""
    Assignment.objects.filter(query=query.pk, state=AssignmentState.LEASED).update(
        state=AssignmentState.EXPIRED, finished_at=Now()
    )


def ask_set_aside_again(*, project: Project, query_id: int, user: AbstractBaseUser) -> Query:
    """Put a question back into the queue, also for those who skipped it, and settle its reports."""
    with transaction.atomic():
        query = _locked_set_aside(project, query_id)
        Assignment.objects.filter(query=query.pk, state=AssignmentState.SKIPPED).update(state=AssignmentState.EXPIRED)
        taken = Assignment.objects.filter(query=query.pk, state__in=HOLDING_A_SLOT).count()
        # Whoever reviewed it set it aside with all its answers: one more person is asked.
        query.overlap = max(query.overlap, taken + 1)
        query.state, query.open_slots = QueryState.OPEN, query.overlap - taken
        query.save(update_fields=["state", "overlap", "open_slots"])
        _resolve(query, user)
    return query


def leave_out_set_aside(*, project: Project, query_id: int, user: AbstractBaseUser) -> Query:
    with transaction.atomic():
        query = _locked_set_aside(project, query_id)
        query.state, query.open_slots, query.assigned_to = QueryState.WITHDRAWN, 0, None
        query.save(update_fields=["state", "open_slots", "assigned_to"])
        end_leases(query=query)
        _resolve(query, user)
    return query


def _locked_set_aside(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).get(pk=query_id, project=project)
    if query.state != QueryState.SET_ASIDE:
        raise InvalidConfiguration("This question was settled meanwhile.")
    return query


def _resolve(query: Query, user: AbstractBaseUser) -> None:
    Report.objects.filter(query=query.pk, resolved_at=None).update(resolved_at=Now(), resolved_by=user.pk)


MAX_COMMENT_LENGTH = 1000


def flag_question(*, assignment: Assignment, kind: ReportKind, comment: str = "") -> Report:
    """Report a question instead of answering it. A broken one is skipped, a sensitive one leaves every page."""
    project = assignment.project
    with transaction.atomic():
        query = Query.objects.select_for_update(no_key=True).get(pk=assignment.query_id)
        current = Assignment.objects.select_for_update(no_key=True).get(pk=assignment.pk)
        if current.state == AssignmentState.LABELLED:
            raise AlreadyLabelled("You answered this question. Undo that answer first.")
        report, _created = Report.objects.get_or_create(
            query=query,
            annotator_id=assignment.annotator_id,
            kind=kind,
            resolved_at=None,
            defaults={"project": project, "comment": comment[:MAX_COMMENT_LENGTH]},
        )
        looks.look_at([project.pk])
        if current.state == AssignmentState.LEASED:
            Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") + 1)
        Assignment.objects.filter(pk=current.pk).update(
            state=AssignmentState.SKIPPED, skip_reason=kind, finished_at=Now()
        )
        if kind == ReportKind.SENSITIVE:
            set_aside(project=project, query=query)
            end_leases(query=query)
        else:
            set_aside_if_nobody_answers(project=project, query=query)
    return report


def comment_on(*, assignment: Assignment, comment: str) -> Report:
    """Comment on a question, once until a manager settles it; a reply to it counts as read."""
    access.refuse_if_closed(assignment.project)
    words = plain_message(comment)
    with transaction.atomic():
        _hold(assignment.project, assignment.query_id)
        mark_read(assignment=assignment)
        report, _created = Report.objects.get_or_create(
            project=assignment.project,
            query_id=assignment.query_id,
            annotator_id=assignment.annotator_id,
            kind=ReportKind.COMMENT,
            resolved_at=None,
            defaults={"comment": words},
        )
        looks.look_at([assignment.project_id])
        if report.comment != words:
            raise InvalidConfiguration("Managers have not read your earlier comment yet.")
    return report


def resolve_report(*, project: Project, report_id: int, user: AbstractBaseUser) -> None:
    open_reports(project, report_id).update(resolved_at=Now(), resolved_by=user.pk)


def reply(*, project: Project, report_id: int, text: str, author: AbstractBaseUser) -> None:
    access.refuse_if_closed(project)
    if (refused := flags.reply_refusal(project)) is not None:
        raise InvalidConfiguration(refused)
    settled = open_reports(project, report_id).update(
        reply=plain_message(text), resolved_at=Now(), resolved_by=author.pk
    )
    if not settled:
        raise InvalidConfiguration(in_english("This report is settled already."))


def open_reports(project: Project, report_id: int) -> QuerySet[Report]:
    return Report.objects.filter(pk=report_id, project=project, kind__in=flags.FROM_ANNOTATORS, resolved_at=None)


def mark_read(*, assignment: Assignment) -> None:
    own = Report.objects.filter(query=assignment.query_id, annotator=assignment.annotator_id)
    own.exclude(reply="").filter(read_at=None).update(read_at=Now())
    if not selectors.correctable_assignments(assignment.annotator_id).filter(pk=assignment.pk).exists():
        own.filter(kind=ReportKind.RETURNED, resolved_at=None).update(
            resolved_at=Now(), resolved_by=assignment.annotator_id
        )


LINE_ENDS = "\n\r\t"


def plain_message(text: str) -> str:
    """Return text without control characters, of bounded length, never empty."""
    words = text.strip()
    if not words:
        raise InvalidConfiguration("Write something first.")
    if len(words) > MAX_COMMENT_LENGTH:
        raise InvalidConfiguration("A comment is plain text of at most 1,000 characters.")
    if any(category(letter) == "Cc" and letter not in LINE_ENDS for letter in words):
        raise InvalidConfiguration("A comment is plain text of at most 1,000 characters.")
    return words


def _hold(project: Project, query_id: int) -> None:
    # Whoever forgets a record holds its question, so that no word about it comes in behind.
    held: QuerySet[Query] = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project)
    if not held.filter(emptied=False).exists():
        raise InvalidConfiguration("This question was settled meanwhile.")
