"""Decisions of reviewers, changes of many questions, and agreement reports."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from annotation import access
from annotation.choices.randomizers import randomizes
from annotation.choices.rules import hides_selection
from annotation.errors import InvalidConfiguration, LeaseExpired, RoleRefused, UndoRefused
from annotation.models import (
    Assignment,
    AssignmentState,
    Consensus,
    Job,
    Label,
    Membership,
    Oracle,
    Project,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
)
from annotation.models.kinds import Aggregation
from annotation.models.quality import Opinion, QualityReport, Review, ReviewState
from annotation.models.questions import ANSWERED
from annotation.questions.selectors import agreed_on, counted, label_type, marks_spans, names_several, refuse_no_answer
from annotation.questions.services import checks as gold
from annotation.questions.services import correcting, flags, labels
from annotation.review import selectors
from annotation.review.agreement import Answer, compare_answers
from annotation.work.services import attempts, jobs
from annotation.work.services.history import note_effect
from privacy.choices import Kind
from privacy.wording import Message, as_message

REPLACED = as_message("A newer run replaced this one.")


def start_report(*, project: Project, owner: User) -> QualityReport:
    jobs.refuse_when_busy()
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        QualityReport.objects.filter(project=project).delete()
        job = jobs.open_job(project=project, kind=jobs.COMPARE, owner=owner)
        # A model of annotators weighs one class against another; sets are compared class by class.
        alone = names_several(project) or marks_spans(project)
        method = Aggregation.MAJORITY if alone else project.aggregation
        return QualityReport.objects.create(project=project, job=job, method=method)


def make_report(*, job_id: str) -> None:
    job = Job.objects.get(pk=job_id)
    with attempts.attempt_at(job) as lease:
        if lease is None:
            return
        report = QualityReport.objects.filter(job=job).first()
        if report is None:
            attempts.fail_work(row=job, error=REPLACED)
            return
        _compare(report, job, lease)


def _compare(report: QualityReport, job: Job, lease: attempts.Lease) -> None:
    labels = Label.objects.filter(query__project=report.project_id, query__emptied=False, superseded_at=None)
    rows = labels.values_list("query", "annotator", "choice").iterator()
    project = report.project
    answers = [Answer(task, person, counted(project, choice)) for task, person, choice in rows if choice is not None]
    if not answers:
        attempts.fail_work(row=job, error=as_message("Nobody has answered anything yet."))
        return
    lease.check()
    comparison = compare_answers(answers, method=report.method, kind=label_type(project))  # type: ignore[arg-type]
    lease.check()
    with transaction.atomic():
        # Whoever starts a newer comparison deletes this one, and holds the project for that.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        if not QualityReport.objects.filter(pk=report.pk).exists():
            attempts.fail_work(row=job, error=REPLACED)
            return
        opinions = (
            Opinion(report=report, query_id=task, choice=choice, probability=probability)
            for task, (choice, probability) in comparison.opinions.items()
        )
        Opinion.objects.bulk_create(opinions, batch_size=2000)
        QualityReport.objects.filter(pk=report.pk).update(
            answers=len(answers),
            questions=len(comparison.opinions),
            alpha=comparison.alpha,
            skills={str(person): skill for person, skill in comparison.skills.items()},
            made_at=Now(),
        )
        attempts.finish_work(row=job)


IN_A_CROWD = as_message("Not for crowds or randomised answers: assignment must not depend on answers.")
RANDOMISED = as_message("Not for crowds or randomised answers: assignment must not depend on answers.")
SECRET = as_message("Not with secret selection: one record could delay another.")


def assigning_refusal(project: Project) -> Message | None:
    if project.oracle == Oracle.CROWD:
        return IN_A_CROWD
    if project.settings.get(Kind.RANDOMIZER.key):
        return RANDOMISED
    return SECRET if hides_selection(project.settings) else None


def assignable_annotators(project: Project) -> QuerySet[Membership]:
    members = Membership.objects.filter(project=project, role=Role.ANNOTATOR, paused_at=None, user__machine=None)
    return members.order_by("user__username")


def assign_chosen(*, project: Project, query_ids: Sequence[int], person_id: int | None) -> list[int]:
    rule = assigning_refusal(project)
    if rule is not None:
        raise InvalidConfiguration(rule)
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        if person_id is not None:
            # Who leaves or is paused at this moment waits, and takes the questions along to everybody.
            members = Membership.objects.select_for_update().filter(project=project, role=Role.ANNOTATOR)
            if not members.filter(pk__in=assignable_annotators(project), user=person_id).exists():
                raise InvalidConfiguration("Assign to an annotator of the project who is not paused.")
        found = Query.objects.select_for_update(no_key=True).filter(
            project=project, pk__in=query_ids, state=QueryState.OPEN, open_slots__gt=0
        )
        if person_id is None:
            found = found.filter(assigned_to__isnull=False)
        else:
            met = Assignment.objects.filter(project=project, annotator=person_id, query=OuterRef("pk"))
            had = Exists(met.exclude(state=AssignmentState.EXPIRED))
            found = found.filter(~had).filter(Q(assigned_to=None) | ~Q(assigned_to=person_id))
        ids = [query.pk for query in found.order_by("pk")]
        Query.objects.filter(pk__in=ids).update(assigned_to=person_id)
    return ids


def change_chosen(
    *, project: Project, query_ids: Sequence[int], action: str, actor: str, comment: str = "", person: int | None = None
) -> list[int]:
    with transaction.atomic():
        if action == "send_back":
            done = correcting.send_back(project=project, query_ids=query_ids, comment=comment)
        elif action == "set_aside":
            done = flags.set_aside_chosen(project=project, query_ids=query_ids)
        else:
            # No annotator has the number 0, and the service says so.
            assignee = None if action == "unassign" else person or 0
            done = assign_chosen(project=project, query_ids=query_ids, person_id=assignee)
        for query_id in done:
            note_effect(project=project, actor=actor, route=f"question:{action}", target={"query_id": query_id})
    return done


def settle(*, project: Project, query_id: int, choice: int, person: User, keep_as_check: bool = False) -> Consensus:
    if keep_as_check:
        _refuse_in_front_of_a_crowd(project)
    _refuse_where_chance_settles(project)
    with transaction.atomic():
        refuse_no_answer(project, choice)
        query = lock_reviewed(project, query_id)
        Consensus.objects.filter(query=query).delete()
        votes = list(Label.objects.filter(query=query, superseded_at=None).values_list("choice", flat=True))
        given = [vote for vote in votes if vote is not None]
        agreed = agreed_on(project, given) if given else None
        consensus = Consensus.objects.create(
            project=project,
            query=query,
            choice=choice,
            votes=len(votes),
            agreeing=sum(vote is not None and counted(project, vote) == counted(project, choice) for vote in votes),
            settled_by=person,
            changed=None if agreed is None else agreed.choice != counted(project, choice),
        )
        query.state = QueryState.CLOSED
        query.save(update_fields=["state"])
        if keep_as_check:
            gold.keep_as_check(query=query, choice=choice, owner=person, answered=len(votes))
        jobs.send_project_changed(project.pk)
    return consensus


def ask_beyond_overlap(*, project: Project, query_id: int) -> Query:
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.overlap, query.open_slots = QueryState.OPEN, query.overlap + 1, query.open_slots + 1
        query.save(update_fields=["state", "overlap", "open_slots"])
    return query


def leave_out_disputed(*, project: Project, query_id: int) -> Query:
    _refuse_where_chance_settles(project)
    with transaction.atomic():
        query = _locked(project, query_id)
        query.state, query.open_slots = QueryState.WITHDRAWN, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def set_aside_in_review(*, project: Project, query_id: int) -> Query:
    _refuse_in_front_of_a_crowd(project)
    with transaction.atomic():
        query = lock_reviewed(project, query_id)
        Consensus.objects.filter(query=query).delete()
        query.state, query.open_slots = QueryState.SET_ASIDE, 0
        query.save(update_fields=["state", "open_slots"])
        jobs.send_project_changed(project.pk)
    return query


def lock_reviewed(project: Project, query_id: int) -> Query:
    """Lock a question that may be decided: disputed, drawn, or agreed on and not used by a training."""
    # Whoever starts a training locks this row first, too, so what is used cannot move under us.
    locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    access.refuse_if_closed(locked)
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state not in ANSWERED:
        raise InvalidConfiguration("This question was settled meanwhile.")
    if query.state == QueryState.CLOSED:
        agreed = Consensus.objects.filter(query=query, settled_by=None).first()
        if agreed is None:
            raise InvalidConfiguration("This question was settled meanwhile.")
        if agreed.pk <= locked.labels_used_through:
            raise UndoRefused("This answer stays: a training may have used it.")
    return query


def _refuse_in_front_of_a_crowd(project: Project) -> None:
    if project.oracle == Oracle.CROWD:
        raise InvalidConfiguration("Not for crowds: annotators would learn that answers differ.")


def _refuse_where_chance_settles(project: Project) -> None:
    if randomizes(project.settings):
        raise InvalidConfiguration("With randomised answers ties are settled at random only.")


def _locked(project: Project, query_id: int) -> Query:
    query = Query.objects.select_for_update(no_key=True).filter(pk=query_id, project=project).first()
    if query is None or query.state != QueryState.DISPUTED:
        raise InvalidConfiguration("This question was settled meanwhile.")
    return query


# Others may take what one is about to take.
TRIES = 5


def claim_review(*, project: Project, person: User) -> Review | None:
    leased = Review.objects.filter(project=project, state=ReviewState.LEASED)
    ended = {"state": ReviewState.ENDED, "finished_at": Now()}
    for _ in range(TRIES):
        leased.filter(leased_until__lt=Now()).exclude(reviewer=person).update(**ended)
        mine = selectors.queue_of(project, person)
        own = leased.filter(reviewer=person).select_related("query__record", "query__project").first()
        if own is not None and mine.filter(pk=own.query_id).exists():
            leased.filter(pk=own.pk).update(leased_until=_until(project))
            return own
        leased.filter(reviewer=person).update(**ended)
        chosen = mine.exclude(pk__in=leased.values("query")).first()
        if chosen is None:
            return None
        # Somebody else may have it by now, or oneself another one on a second page: then it is looked for again.
        lease = Review(project=project, query=chosen, reviewer=person, leased_until=_until(project))
        Review.objects.bulk_create([lease], ignore_conflicts=True)
    return None


def settle_reviewed(
    *, project: Project, person: User, query_id: int, choice: int, keep_as_check: bool = False
) -> Consensus:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        consensus = settle(
            project=project, query_id=query_id, choice=choice, person=person, keep_as_check=keep_as_check
        )
        _finish(project, person, query_id, ReviewState.SETTLED)
    return consensus


def return_reviewed(*, project: Project, person: User, query_id: int, comment: str) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        if not correcting.send_back(project=project, query_ids=[query_id], comment=comment):
            raise UndoRefused("This answer stays: a training may have used it.")
        _finish(project, person, query_id, ReviewState.RETURNED)


def set_aside_reviewed(*, project: Project, person: User, query_id: int) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        set_aside_in_review(project=project, query_id=query_id)
        _finish(project, person, query_id, ReviewState.SET_ASIDE)


def skip_review(*, project: Project, person: User, query_id: int) -> None:
    with transaction.atomic():
        _refuse_others(project, person, query_id)
        _finish(project, person, query_id, ReviewState.SKIPPED)


def undo_review(*, project: Project, person: User) -> Review:
    """Take the last decision back and lease its question again, if no training has used it."""
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        access.refuse_if_closed(locked)
        last = selectors.undoable_review(project, person)
        if last is None:
            raise UndoRefused("No decision of the last ten minutes to undo.")
        query = Query.objects.select_for_update(no_key=True).get(pk=last.query_id)
        _take_back(locked, query, last)
        Review.objects.filter(pk=last.pk).update(state=ReviewState.ENDED)
        held = Review.objects.filter(project=project, state=ReviewState.LEASED)
        if held.filter(query=query).exclude(reviewer=person).exists():
            raise UndoRefused("Another person has this question now; it stays skipped.")
        held.filter(reviewer=person).update(state=ReviewState.ENDED, finished_at=Now())
        return Review.objects.create(project=project, query=query, reviewer=person, leased_until=_until(project))


def _take_back(project: Project, query: Query, last: Review) -> None:
    if last.state == ReviewState.RETURNED:
        sent = Report.objects.filter(query=query, kind=ReportKind.RETURNED, resolved_at=None)
        if not sent.update(resolved_at=Now(), resolved_by=last.reviewer_id):
            raise UndoRefused("This question was settled meanwhile.")
    elif last.state == ReviewState.SET_ASIDE:
        _agree_as_before(project, query, QueryState.SET_ASIDE)
    elif last.state == ReviewState.SETTLED:
        decided = Consensus.objects.filter(query=query, settled_by=last.reviewer_id)
        if decided.filter(pk__lte=project.labels_used_through).exists():
            raise UndoRefused("This answer stays: a training may have used it.")
        if query.state != QueryState.CLOSED or not decided.exists():
            raise UndoRefused("This question was settled meanwhile.")
        decided.delete()
        _agree_as_before(project, query, QueryState.CLOSED)


def _agree_as_before(project: Project, query: Query, state: QueryState) -> None:
    answers = labels.current_answers(query)
    if query.state != state or not answers:
        raise UndoRefused("This question was settled meanwhile.")
    labels.close_query(project, query, answers)


def _refuse_others(project: Project, person: User, query_id: int) -> None:
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    held = Review.objects.filter(query=query_id, state=ReviewState.LEASED, leased_until__gte=Now())
    if held.exclude(reviewer=person).exists():
        raise LeaseExpired("Another person is reviewing this question; nothing was stored.")
    if selectors.queue_of(project, person).filter(pk=query_id).exists():
        return
    if selectors.waiting_for_review(project).filter(pk=query_id).exists():
        raise RoleRefused("Nobody reviews their own answers.")
    raise InvalidConfiguration("This question was settled meanwhile.")


def _finish(project: Project, person: User, query_id: int, state: ReviewState) -> None:
    own = Review.objects.filter(query=query_id, reviewer=person, state=ReviewState.LEASED)
    if not own.update(state=state, finished_at=Now()):
        Review.objects.create(
            project=project, query_id=query_id, reviewer=person, state=state, leased_until=Now(), finished_at=Now()
        )


def _until(project: Project) -> Any:
    return Now() + timedelta(seconds=project.lease_seconds)
