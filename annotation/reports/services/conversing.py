"""Words between an annotator and the managers about a question, both ways, unread until whoever they are for read them.

What annotators say they may say in every project. What managers say is refused in front of a crowd, and may be said
where questions are secret, since only who was asked one reads it; no mail tells of it there.
"""

from unicodedata import category

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from annotation import access, selectors
from annotation.errors import InvalidConfiguration
from annotation.models import Assignment, Project, Query, Report, ReportKind
from annotation.reports.selectors import threads
from annotation.reports.services import reporting
from privacy.wording import as_message

NO_PARTNER = as_message(
    "Nobody of this name among the project's annotators answered the question or said something of it."
)
LINE_ENDS = "\n\r\t"


def reply(*, project: Project, query_id: int, person_id: int, text: str, author: AbstractBaseUser) -> Report:
    """Write to an annotator about a question; what they commented on it counts as read. The same words wait once."""
    access.refuse_if_closed(project)
    if (refused := threads.conversation_refusal(project)) is not None:
        raise InvalidConfiguration(refused)
    words = plain_message(text)
    partners = {thread.person_id for thread in threads.threads_of(project, query_id) if thread.may_write}
    if person_id not in partners:
        raise InvalidConfiguration(NO_PARTNER)
    with transaction.atomic():
        _hold(project, query_id)
        mark_heard(project=project, query_id=query_id, person_id=person_id, reader=author)
        written, _new = Report.objects.get_or_create(
            project=project,
            query_id=query_id,
            annotator_id=person_id,
            kind=ReportKind.REPLY,
            comment=words,
            resolved_at=None,
            defaults={"author_id": author.pk},
        )
    return written


def mark_heard(*, project: Project, query_id: int, person_id: int, reader: AbstractBaseUser) -> int:
    """Take an annotator's comments on a question off what no manager has read; flags wait for a decision."""
    said = Report.objects.filter(project=project, query=query_id, annotator=person_id, resolved_at=None)
    return said.filter(kind=ReportKind.COMMENT).update(resolved_at=Now(), resolved_by=reader.pk)


def write_back(*, assignment: Assignment, text: str) -> Report:
    """Tell the managers something about a question one was asked; what they wrote of it counts as read."""
    access.refuse_if_closed(assignment.project)
    words = plain_message(text)
    with transaction.atomic():
        _hold(assignment.project, assignment.query_id)
        mark_read(assignment=assignment)
        return reporting.comment_on(assignment=assignment, comment=words)


def mark_read(*, assignment: Assignment) -> int:
    """Take what managers wrote about a question off what is unread.

    An answer that came back stays there until it is looked at again, or may be changed no more.
    """
    kinds = list(threads.FROM_MANAGERS)
    if selectors.correctable_assignments(assignment.annotator_id).filter(pk=assignment.pk).exists():
        kinds.remove(ReportKind.RETURNED)
    unread = Report.objects.filter(query=assignment.query_id, annotator=assignment.annotator_id, resolved_at=None)
    return unread.filter(kind__in=kinds).update(resolved_at=Now(), resolved_by=assignment.annotator_id)


def plain_message(text: str) -> str:
    """Return words as they are kept: plain text of a bounded length, never cut and never empty."""
    words = text.strip()
    if not words:
        raise InvalidConfiguration("Write something first.")
    if len(words) > reporting.MAX_COMMENT_LENGTH:
        raise InvalidConfiguration("A comment has at most 1,000 characters.")
    if any(category(letter) == "Cc" and letter not in LINE_ENDS for letter in words):
        raise InvalidConfiguration("A comment is plain text without control characters.")
    return words


def _hold(project: Project, query_id: int) -> None:
    # Whoever forgets a record holds its question, so that no word about it comes in behind.
    held: QuerySet[Query] = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project)
    if not held.filter(emptied=False).exists():
        raise InvalidConfiguration("This question is asked no more.")
