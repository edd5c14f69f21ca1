"""Mails about returned answers, questions, reviews, releases and decisions; none holds a number of answers."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.models import (
    Assignment,
    Label,
    Project,
    ProjectState,
    Query,
    QueryState,
    Report,
    ReportKind,
    Role,
    WorkState,
)
from annotation.models.letters import MailKind, Notice
from annotation.models.quality import Review
from annotation.people.services import letters
from annotation.review import selectors
from annotation.work.services import looks
from learner.models import ModelRelease, ReleaseState, Round
from learner.pools.selectors import guarantee_accounts
from learner.rounds.next_step import Step, project_status
from privacy.ledger.selectors import guarantee

BUDGET_SHARE = 0.8
# What annotators say about questions, for managers to look at.
TO_MANAGERS = (ReportKind.COMMENT, ReportKind.BROKEN, ReportKind.SENSITIVE)
# Where the project goes on once a manager does something.
DECISIONS = frozenset({Step.FEW_LABELS, Step.LABELS_SPENT, Step.CANNOT_PAY, Step.STUCK})
# What happened longer ago is old news when somebody joins, or when the site was down.
NEWS = timedelta(days=3)
# Whoever answers anyway, or was told yesterday, needs no mail about more questions.
QUIET = timedelta(days=1)
FOR_MODELS = (Role.ENGINEER, Role.MANAGER)


# Who is told, of which kind it is, what names it, and what its letter says.
Told = tuple[QuerySet[User], MailKind, str, dict[str, Any]]


def record_notices() -> int:
    """Write down what there is to tell and was not written down yet; return for how many people it is new."""
    since = timezone.now() - NEWS
    projects = Project.objects.filter(state__in=(ProjectState.ACTIVE, ProjectState.PAUSED))
    moved = projects.filter(looks.has_moved("pk", since="move__told_at"))
    return sum(_record(project, since) for project in moved.select_related("pool_account", "labels_account"))


def _record(project: Project, since: datetime) -> int:
    recorded = 0
    with transaction.atomic():
        # Before anything is read: what happens later is told the next time.
        looks.note_move(project.pk, told_at=Now())
        told = [_releases(project, since), _budgets(project)]
        if project.state == ProjectState.ACTIVE and not hides_selection(project.settings):
            told += [_returned(project, since), _remarks(project, since)]
            told += [_questions(project, since), _reviews(project), _decision(project)]
        for people, kind, subject, facts in chain.from_iterable(told):
            recorded += letters.write_notice(project=project, people=people, kind=kind, subject=subject, facts=facts)
    return recorded


def _releases(project: Project, since: datetime) -> Iterator[Told]:
    released = ModelRelease.objects.filter(project=project, state=ReleaseState.RELEASED, released_at__gte=since)
    for version, when in released.order_by("version").values_list("version", "released_at"):
        people = letters.members_in_roles(project, FOR_MODELS, since=when)
        yield people, MailKind.RELEASE, f"version {version}", {"version": version}


def _budgets(project: Project) -> Iterator[Told]:
    for account in guarantee_accounts(project):
        now = guarantee(account)
        if now.epsilon_limit and now.epsilon_spent >= BUDGET_SHARE * now.epsilon_limit:
            # A limit that is raised can be reached anew.
            subject = f"account {account.pk} limit {now.epsilon_limit:.9g}"
            people = letters.members_in_roles(project, FOR_MODELS)
            yield people, MailKind.BUDGET, subject, {"limit": now.epsilon_limit}


def _returned(project: Project, since: datetime) -> Iterator[Told]:
    """Tell those to whom an answer came back; a manager who sends many back writes to each once."""
    back = Report.objects.filter(project=project, kind=ReportKind.RETURNED, resolved_at=None, created_at__gte=since)
    for person, when in back.order_by("created_at").values_list("annotator", "created_at"):
        people = letters.members_in_roles(project, (Role.ANNOTATOR,)).filter(pk=person)
        yield people, MailKind.RETURNED, f"at {when:%Y-%m-%d %H}", {}


def _remarks(project: Project, since: datetime) -> Iterator[Told]:
    """Tell annotators that managers wrote, and managers that annotators did: once an hour at most."""
    replies = Report.objects.filter(project=project, read_at=None, resolved_at__gte=since).exclude(reply="")
    for person, when in replies.order_by("resolved_at").values_list("annotator", "resolved_at"):
        people = letters.members_in_roles(project, (Role.ANNOTATOR,)).filter(pk=person)
        yield people, MailKind.REMARK, f"to {person} at {when:%Y-%m-%d %H}", {}
    said = Report.objects.filter(project=project, resolved_at=None, created_at__gte=since)
    hours = {f"{when:%Y-%m-%d %H}" for when in said.filter(kind__in=TO_MANAGERS).values_list("created_at", flat=True)}
    for hour in sorted(hours):
        people = letters.members_in_roles(project, (Role.MANAGER,))
        yield people, MailKind.REMARK, f"to managers at {hour}", {"to_managers": True}


def _questions(project: Project, since: datetime) -> Iterator[Told]:
    """Tell annotators who have not been here for a day that a round opened questions."""
    rounds = Round.objects.filter(project=project, state=WorkState.DONE, block=None, finished_at__gte=since)
    newest = rounds.order_by("-number").values_list("number", flat=True).first()
    if newest is None or not Query.objects.filter(project=project, state=QueryState.OPEN, open_slots__gt=0).exists():
        return
    lately = timezone.now() - QUIET
    people = letters.members_in_roles(project, (Role.ANNOTATOR,))
    people = people.exclude(
        pk__in=Assignment.objects.filter(project=project, created_at__gte=lately).values("annotator")
    ).exclude(
        pk__in=Notice.objects.filter(project=project, kind=MailKind.QUESTIONS, created_at__gte=lately).values("person")
    )
    yield people, MailKind.QUESTIONS, f"round {newest}", {}


def _reviews(project: Project) -> Iterator[Told]:
    """Tell reviewers who decided nothing for a day that something waits for them; of the same questions once."""
    lately = timezone.now() - QUIET
    people = letters.members_in_roles(project, (Role.REVIEWER,))
    people = people.exclude(
        pk__in=Review.objects.filter(project=project, finished_at__gte=lately).values("reviewer")
    ).exclude(
        pk__in=Notice.objects.filter(project=project, kind=MailKind.REVIEW, created_at__gte=lately).values("person")
    )
    for person in people:
        waiting = selectors.queue_of(project, person).order_by().values("pk")
        # A question waits from its last answer on, whatever its own number.
        newest = Label.objects.filter(query__in=waiting).aggregate(newest=Max("pk"))["newest"]
        known = Notice.objects.filter(project=project, person=person, kind=MailKind.REVIEW)
        if newest is not None and not known.filter(facts__up_to__gte=newest).exists():
            yield people.filter(pk=person.pk), MailKind.REVIEW, f"up to answer {newest}", {"up_to": newest}


def _decision(project: Project) -> Iterator[Told]:
    """Tell managers that the project stands still until one of them decides; once at each place it stands still at."""
    place = waiting_place(project)
    if place is not None:
        yield letters.members_in_roles(project, (Role.MANAGER,)), MailKind.WAITING, place[1], {}


def waiting_place(project: Project) -> tuple[Step, str] | None:
    """Return the step at which the project stands still until a manager decides, and words that name the place."""
    if project.state != ProjectState.ACTIVE:
        return None
    step = project_status(project).step
    if step not in DECISIONS:
        return None
    asked = Round.objects.filter(project=project, state=WorkState.DONE).count()
    made = ModelRelease.objects.filter(project=project).count()
    return step, f"{step} after {asked} rounds and {made} models"
