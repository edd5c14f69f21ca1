"""Undoing and changing answers, and sending them back."""

from collections.abc import Sequence

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from annotation import access, selectors
from annotation.errors import InvalidConfiguration, UndoRefused
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Label,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
)
from annotation.models.questions import ANSWERED
from annotation.questions.selectors import agreed_on, refuse_no_answer
from annotation.questions.services import checks as gold
from annotation.questions.services import labels
from annotation.questions.services.flags import MAX_COMMENT_LENGTH
from annotation.work.services import leases
from privacy.choices import Kind
from privacy.wording import in_english


def undo_last(*, project: Project, user: AbstractBaseUser) -> Assignment:
    answered = selectors.undoable_assignments(user).filter(project=project).first()
    skipped = selectors.undoable_skips(user).filter(project=project).first()
    times = [one.finished_at for one in (answered, skipped) if one is not None and one.finished_at is not None]
    if skipped is not None and skipped.finished_at == max(times):
        return undo_skip(project=project, skipped=skipped)
    return undo_label(project=project, user=user)


def undo_label(*, project: Project, user: AbstractBaseUser) -> Assignment:
    with transaction.atomic():
        last = selectors.undoable_assignments(user).filter(project=project).first()
        if last is None:
            raise UndoRefused("No answer can be undone: it is over ten minutes old, or a training used it.")
        # Whoever starts a training locks this row first, too, and then the questions it withdraws: what is used
        # cannot move under us, and nobody waits in a circle.
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        access.refuse_if_closed(locked)
        if leases.lock_questions(last)[last.query_id].state == QueryState.WITHDRAWN:
            raise UndoRefused("This answer stays: a training may have used it.")
        current = Assignment.objects.select_for_update(no_key=True).get(pk=last.pk)
        if current.state != AssignmentState.LABELLED:
            raise UndoRefused(in_english("This was taken back already."))
        consensus = Consensus.objects.filter(query=current.query_id).first()
        is_check = current.query.state == QueryState.GOLD
        if not is_check and not selectors.undoable_assignments(user).filter(pk=current.pk).exists():
            raise UndoRefused("This answer stays: a training may have used it.")
        if consensus is not None and not is_check:
            consensus.delete()
        kept = (QueryState.SET_ASIDE, QueryState.GOLD)
        Query.objects.filter(pk=current.query_id).exclude(state__in=kept).update(state=QueryState.OPEN)
        current.labels.filter(superseded_at=None).update(superseded_at=Now())
        leases.end_lease(leases.lease_held_by(current))
        leases.lease_again(current, seconds=project.lease_seconds)
    return current


def undo_skip(*, project: Project, skipped: Assignment) -> Assignment:
    """Take back a skip or flag, if the slot is still free and nobody decided about the question."""
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        query = leases.lock_questions(skipped)[skipped.query_id]
        current = Assignment.objects.select_for_update(no_key=True).get(pk=skipped.pk)
        if current.state != AssignmentState.SKIPPED:
            raise UndoRefused(in_english("This was taken back already."))
        own = Report.objects.filter(query=query.pk, annotator=current.annotator_id, resolved_at=None)
        own.exclude(kind__in=(ReportKind.COMMENT, ReportKind.RETURNED)).update(
            resolved_at=Now(), resolved_by=current.annotator_id
        )
        if query.state == QueryState.SET_ASIDE:
            if Report.objects.filter(query=query.pk, kind=ReportKind.SENSITIVE, resolved_at=None).exists():
                raise UndoRefused("Another person flagged this question too, so a manager decides.")
            taken = Assignment.objects.filter(
                query=query.pk, state__in=(AssignmentState.LABELLED, AssignmentState.LEASED)
            ).count()
            query.state, query.open_slots = QueryState.OPEN, max(0, query.overlap - taken)
            query.save(update_fields=["state", "open_slots"])
        if query.state not in (QueryState.OPEN, QueryState.GOLD):
            raise UndoRefused("This question was settled meanwhile.")
        if not query.open_slots:
            raise UndoRefused("Another person has this question now; it stays skipped.")
        leases.end_lease(leases.lease_held_by(current))
        leases.lease_again(current, seconds=project.lease_seconds)
        Query.objects.filter(pk=query.pk).update(open_slots=F("open_slots") - 1)
    return current


def correct_answer(*, project: Project, user: AbstractBaseUser, query_id: int, choice: int) -> Label:
    """Replace or confirm the person's own answer while no training has used it; consensus is computed again."""
    with transaction.atomic():
        refuse_no_answer(project, choice)
        # Whoever starts a training locks this row first, too, so what is used cannot move under us.
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
        own = selectors.correctable_assignments(user.pk).filter(project=project, query=query_id).first()
        if query is None or own is None:
            raise UndoRefused("This answer stays: a training may have used it.")
        Assignment.objects.select_for_update(no_key=True).get(pk=own.pk)
        Report.objects.filter(query=query, annotator=user.pk, kind=ReportKind.RETURNED, resolved_at=None).update(
            resolved_at=Now(), resolved_by=user.pk
        )
        before = own.labels.get(superseded_at=None)
        if before.choice == choice:
            return before
        Label.objects.filter(pk=before.pk).update(superseded_at=Now())
        label = Label.objects.create(
            assignment=own, query=query, annotator_id=own.annotator_id, choice=choice, supersedes=before
        )
        if query.state == QueryState.GOLD:
            gold.judge_member(project=project, user_id=own.annotator_id)
        elif query.state in ANSWERED:
            _agree_anew(project, query)
    return label


def _agree_anew(project: Project, query: Query) -> None:
    if Consensus.objects.filter(query=query, settled_by__isnull=False).exists():
        return
    Consensus.objects.filter(query=query).delete()
    votes = labels.current_answers(query)
    if agreed_on(project, votes) is None and labels.ask_one_more(project=project, query=query):
        Query.objects.filter(pk=query.pk).update(state=QueryState.OPEN)
    else:
        labels.close_query(project, query, votes)


def send_back(*, project: Project, query_ids: Sequence[int], comment: str) -> list[int]:
    """Ask those who answered to look again; return the questions that no training has used yet."""
    if project.oracle == Oracle.CROWD:
        raise InvalidConfiguration("Not for crowds: annotators would learn that answers differ.")
    if project.settings.get(Kind.RANDOMIZER.key):
        raise InvalidConfiguration("Randomised answers are given once.")
    if not comment.strip():
        raise InvalidConfiguration("Say in the comment what to check.")
    sent: set[int] = set()
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        answered = Assignment.objects.filter(project=project, query__in=query_ids, state=AssignmentState.LABELLED)
        for person in sorted(set(answered.values_list("annotator", flat=True))):
            own = selectors.correctable_assignments(person).filter(project=project, query__in=query_ids)
            own = own.exclude(query__state=QueryState.GOLD)
            for assignment in own:
                Report.objects.get_or_create(
                    query_id=assignment.query_id,
                    annotator_id=person,
                    kind=ReportKind.RETURNED,
                    resolved_at=None,
                    defaults={"project": project, "comment": comment.strip()[:MAX_COMMENT_LENGTH]},
                )
                sent.add(assignment.query_id)
    return sorted(sent)
