"""Taking back what one did in the last minutes: an answer, a skip or a flag.

Locks are taken project first, then question, then assignment, so that nobody waits in a circle.
"""

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from annotation import access, selectors
from annotation.errors import UndoRefused
from annotation.models import Assignment, AssignmentState, Consensus, Project, Query, QueryState, Report, ReportKind
from annotation.work.services import leases


def undo_last(*, project: Project, user: AbstractBaseUser) -> Assignment:
    """Take back the newest of the person's answers, skips and flags that can be, and lease its question to them."""
    answered = selectors.undoable_assignments(user).filter(project=project).first()
    skipped = selectors.undoable_skips(user).filter(project=project).first()
    times = [one.finished_at for one in (answered, skipped) if one is not None and one.finished_at is not None]
    if skipped is not None and skipped.finished_at == max(times):
        return undo_skip(project=project, skipped=skipped)
    return undo_label(project=project, user=user)


def undo_label(*, project: Project, user: AbstractBaseUser) -> Assignment:
    """Take back the person's last answer, if it is minutes old and no training has it, and lease the question to them.

    The answer stays, superseded. A question the person holds meanwhile is given back and comes again later.
    """
    with transaction.atomic():
        last = selectors.undoable_assignments(user).filter(project=project).first()
        if last is None:
            raise UndoRefused("There is no answer left to take back: it is over ten minutes old or a training used it.")
        # Whoever starts a training locks this row first, too, and then the questions it withdraws: what is used
        # cannot move under us, and nobody waits in a circle.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        access.refuse_if_closed(locked)
        if leases.lock_questions(last)[last.query_id].state == QueryState.WITHDRAWN:
            raise UndoRefused("The block of this question is closed, so the answer stays.")
        current = Assignment.objects.select_for_update(no_key=True).get(pk=last.pk)
        if current.state != AssignmentState.LABELLED:
            raise UndoRefused("This answer was taken back already.")
        consensus = Consensus.objects.filter(query=current.query_id).first()
        is_check = current.query.state == QueryState.GOLD
        if not is_check and not selectors.undoable_assignments(user).filter(pk=current.pk).exists():
            raise UndoRefused("A training has used this answer, so it stays.")
        if consensus is not None and not is_check:
            consensus.delete()
        kept = (QueryState.SET_ASIDE, QueryState.GOLD)
        Query.objects.filter(pk=current.query_id).exclude(state__in=kept).update(state=QueryState.OPEN)
        current.labels.filter(superseded_at=None).update(superseded_at=Now())
        leases.end_lease(leases.lease_held_by(current))
        leases.lease_again(current, seconds=project.lease_seconds)
    return current


def undo_skip(*, project: Project, skipped: Assignment) -> Assignment:
    """Take a skip or a flag back, if nobody has taken the place or decided about the question, and lease it again.

    The flag stays stored, as settled by the person who made it. A question that was set aside because of it is asked
    again.
    """
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        query = leases.lock_questions(skipped)[skipped.query_id]
        current = Assignment.objects.select_for_update(no_key=True).get(pk=skipped.pk)
        if current.state != AssignmentState.SKIPPED:
            raise UndoRefused("This was taken back already.")
        own = Report.objects.filter(query=query.pk, annotator=current.annotator_id, resolved_at=None)
        own.exclude(kind__in=(ReportKind.COMMENT, ReportKind.RETURNED)).update(
            resolved_at=Now(), resolved_by=current.annotator_id
        )
        if query.state == QueryState.SET_ASIDE:
            if Report.objects.filter(query=query.pk, kind=ReportKind.SENSITIVE, resolved_at=None).exists():
                raise UndoRefused("Somebody else flagged this question, too, so a manager decides about it.")
            taken = Assignment.objects.filter(
                query=query.pk, state__in=(AssignmentState.LABELLED, AssignmentState.LEASED)
            ).count()
            query.state, query.open_slots = QueryState.OPEN, max(0, query.overlap - taken)
            query.save(update_fields=["state", "open_slots"])
        if query.state not in (QueryState.OPEN, QueryState.GOLD):
            raise UndoRefused("This question is settled meanwhile, so it stays skipped.")
        if not query.open_slots:
            raise UndoRefused("Somebody else has this question now, so it stays skipped.")
        leases.end_lease(leases.lease_held_by(current))
        leases.lease_again(current, seconds=project.lease_seconds)
        Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") - 1)
    return current
