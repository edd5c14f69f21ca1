"""Events of a project that programs are told, looked up by a clock and written down once."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.db.models.functions import Now
from django.utils import timezone

from addons.webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from addons.webhooks.services import NEVER_IN_HIDING, message_body
from annotation.choices.rules import hides_selection
from annotation.models import (
    Dataset,
    DatasetState,
    GateRun,
    Guidelines,
    Job,
    Label,
    Membership,
    Project,
    ProjectState,
    Report,
    WorkState,
)
from annotation.models.history import Action, ProjectChange
from annotation.models.limits import LimitRequest, RequestState
from annotation.models.retention import Forgetting
from annotation.people.services.members import LEFT
from annotation.review.selectors import waiting_for_review
from annotation.work.services import jobs, looks
from learner.models import ModelRelease, ReleaseState, Round, TrainingRun
from learner.notices import BUDGET_SHARE, TO_MANAGERS, waiting_place
from learner.pools.selectors import guarantee_accounts
from privacy.ledger.models import EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee

# Of answers that wait for review a day is soon enough.
REVIEW_PAUSE = timedelta(days=1)
ROLE_ENDED = ("annotation:remove_member", "api:remove_member")
GROUP_LEFT = (LEFT, "annotation:take_group_role", "api:take_group_role")
# Work that reads answers: when it ends follows from them.
READS_ANSWERS = (jobs.COMPARE, jobs.EXPORT)
# What somebody asked for and no other event tells of once it is done.
ASKED_FOR = (jobs.SURVEY, jobs.COMPARE, jobs.SIMULATE, jobs.EXPORT)
_Happening = tuple[str, dict[str, Any]]


def record_events() -> int:
    recorded = 0
    faults: list[Exception] = []
    # The addresses of a deleted project are being erased, and nobody learns of what is left.
    listening = Webhook.objects.filter(looks.has_moved("project", since="told_at"), removed_at=None).exclude(
        project__state=ProjectState.DELETED
    )
    for webhook in listening.select_related("project__pool_account", "project__labels_account"):
        try:
            with transaction.atomic():
                # Before anything is read: what happens later is told the next time.
                Webhook.objects.filter(pk=webhook.pk).update(told_at=Now())
                recorded += _record(webhook)
        except Exception as fault:  # noqa: BLE001 - raised below
            faults.append(fault)
    if faults:
        raise faults[0]
    return recorded


def _record(webhook: Webhook) -> int:
    recorded = 0
    hidden = NEVER_IN_HIDING if hides_selection(webhook.project.settings) else frozenset()
    for event in (each for each in LOOKED_UP if each in webhook.events and each not in hidden):
        for subject, facts in LOOKED_UP[event](webhook, webhook.subscribed_since(event)):
            _, new = WebhookDelivery.objects.get_or_create(
                webhook=webhook,
                event=event,
                subject=subject,
                defaults={"body": message_body(webhook.project, event, facts)},
            )
            recorded += new
    return recorded


def _releases(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    released = ModelRelease.objects.filter(project=webhook.project, state=ReleaseState.RELEASED, released_at__gte=since)
    for version in released.order_by("version").values_list("version", flat=True):
        yield f"version {version}", {"version": version}


def _rounds(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    done = Round.objects.filter(project=webhook.project, state=WorkState.DONE, finished_at__gte=since)
    for number in done.order_by("number").values_list("number", flat=True):
        yield f"round {number}", {"round": number}


def _budgets(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    for account in guarantee_accounts(webhook.project):
        now = guarantee(account)
        if now.epsilon_limit and now.epsilon_spent >= BUDGET_SHARE * now.epsilon_limit:
            # A limit that is raised can be reached anew.
            facts = {"account": account.scope, "limit_epsilon": now.epsilon_limit}
            yield f"account {account.pk} limit {now.epsilon_limit:.9g}", facts


def _limits(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    changed = LedgerEntry.objects.filter(
        account__in=guarantee_accounts(webhook.project),
        kind=EntryKind.LIMIT_CHANGE,
        created_at__gte=_whole_second(since),
    )
    for entry in changed.select_related("account").order_by("pk"):
        yield f"entry {entry.pk}", {"account": entry.account.scope}


def _requests(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    """Yield what a second manager is asked to agree to, and what became of it; reasons and persons stay on the page."""
    asked = LimitRequest.objects.filter(project=webhook.project)
    new = Q(requested_at__gte=since)
    for number, kind in asked.filter(new).order_by("pk").values_list("pk", "kind"):
        yield f"request {number} open", {"request": number, "kind": kind, "state": RequestState.OPEN}
    settled = asked.filter(decided_at__gte=since).order_by("pk")
    for number, kind, state in settled.values_list("pk", "kind", "state"):
        yield f"request {number} {state}", {"request": number, "kind": kind, "state": state}


def _uploads(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    read = Dataset.objects.filter(project=webhook.project, job__finished_at__gte=since)
    for number, state in read.exclude(state=DatasetState.RECEIVING).order_by("pk").values_list("pk", "state"):
        yield f"upload {number}", {"dataset": number, "state": state}


def _gates(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    passed = GateRun.objects.filter(project=webhook.project, committed_entry__created_at__gte=_whole_second(since))
    for run, number in passed.order_by("pk").values_list("pk", "dataset"):
        yield f"gate {run}", {"dataset": number}


def _settings(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    for change in _changes(webhook, since):
        # Values may be words about records; their names say enough to look.
        facts: dict[str, Any] = {"settings": sorted(change.fields)}
        if "state" in change.fields:
            facts["state"] = change.fields["state"][1]
        yield f"change {change.pk}", facts


def _archived(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    for change in _changes(webhook, since):
        if ProjectState.ARCHIVED in change.fields.get("state", ()):
            yield f"change {change.pk}", {"state": change.fields["state"][1]}


def _changes(webhook: Webhook, since: datetime) -> Iterator[ProjectChange]:
    changed = ProjectChange.objects.filter(project=webhook.project, created_at__gte=since)
    yield from changed.order_by("pk")


def _reports(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    # By the question's number alone: what was said about it, and by whom, stays on the managers' page.
    said = Report.objects.filter(project=webhook.project, kind__in=TO_MANAGERS, created_at__gte=since)
    for number, question in said.order_by("pk").values_list("pk", "query"):
        yield f"report {number}", {"question": question}


def _reviews(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    delivered = WebhookDelivery.objects.filter(webhook=webhook, event=WebhookEvent.REVIEW)
    if delivered.filter(created_at__gte=timezone.now() - REVIEW_PAUSE).exists():
        return
    waiting = waiting_for_review(webhook.project).values("pk")
    # A question waits from its last answer on, whatever its own number.
    newest = Label.objects.filter(query__in=waiting).aggregate(newest=Max("pk"))["newest"]
    if newest is not None:
        yield f"up to answer {newest}", {}


def _waiting(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    place = waiting_place(webhook.project)
    if place is not None:
        yield place[1], {"step": place[0]}


def _failures(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    """Yield work that failed, never why: the reason may quote what was read. What people cancelled has not failed."""
    failed = {"project": webhook.project, "state": WorkState.FAILED, "cancelled_by": ""}
    failed["finished_at__gte"] = since
    for row, number in Round.objects.filter(**failed).order_by("pk").values_list("pk", "number"):
        yield f"round {number}, row {row}", {"work": "round", "round": number}
    longer = Job.objects.filter(**failed, kind__in=jobs.TASKS).order_by("finished_at")
    trained = TrainingRun.objects.filter(**failed).order_by("finished_at")
    if hides_selection(webhook.project.settings):
        # Engineers read there that a round failed, and of no training when, which may follow from its answers.
        longer, trained = longer.exclude(kind__in=READS_ANSWERS), trained.none()
    for job, kind, when in longer.values_list("pk", "kind", "finished_at"):
        # Started anew it may fail anew.
        yield f"job {job} at {when:%Y-%m-%d %H:%M:%S}", {"work": kind, "job": str(job)}
    for run, version in trained.values_list("pk", "version"):
        yield f"training {run}", {"work": "training", "version": version}


def _finished(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    done = Job.objects.filter(
        project=webhook.project, state=WorkState.DONE, kind__in=ASKED_FOR, finished_at__gte=since
    ).order_by("finished_at")
    if hides_selection(webhook.project.settings):
        done = done.exclude(kind__in=READS_ANSWERS)
    for job, kind in done.values_list("pk", "kind"):
        yield f"job {job}", {"work": kind, "job": str(job)}


def _members(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    """Yield who came, paused or left, by the number of the role; none of those a crowd platform sends, nor machines."""
    here = Membership.objects.filter(project=webhook.project, user__machine=None, user__crowd_participations=None)
    joined = here.filter(created_at__gte=since).order_by("pk")
    for number, role in joined.values_list("pk", "role"):
        yield f"membership {number}", {"change": "joined", "membership": number, "role": role}
    if not hides_selection(webhook.project.settings):
        # Hidden checks pause people as well, at a moment that follows from what they were asked.
        paused = here.filter(paused_at__gte=since).order_by("paused_at")
        for number, when in paused.values_list("pk", "paused_at"):
            yield f"membership {number} at {when:%Y-%m-%d %H:%M:%S}", {"change": "paused", "membership": number}
    yield from _left(webhook.project, since)


def _left(project: Project, since: datetime) -> Iterator[_Happening]:
    done = Action.objects.filter(project=project, created_at__gte=since, route__in=(*ROLE_ENDED, *GROUP_LEFT))
    for action in done.order_by("pk"):
        number = action.target.get("membership_id")
        if action.route in GROUP_LEFT:
            yield f"action {action.pk}", {"change": "left"}
        elif number and not Membership.objects.filter(pk=number).exists():
            yield f"action {action.pk}", {"change": "left", "membership": number}


def _guidelines(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    stands = Guidelines.objects.filter(
        project=webhook.project, version=webhook.project.guidelines_version, created_at__gte=since
    )
    for version in stands.values_list("version", flat=True):
        yield f"version {version}", {"guidelines": version}


def _forgotten(webhook: Webhook, since: datetime) -> Iterator[_Happening]:
    # By the number of the request: of the person's name not even its digest.
    done = Forgetting.objects.filter(project=webhook.project, finished_at__gte=since)
    for number in done.order_by("pk").values_list("pk", flat=True):
        yield f"forgetting {number}", {"forgetting": number}


def _whole_second(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


# Events whose time no row keeps (a version taken back, a channel or a study that moved) come by a signal. No event is
# that somebody answered, and what answers agree on, for how soon follows from what was read; what two people say to
# each other (an answer sent back, a reply); who takes part in a study, and when; what waits in a population, whose
# managers are not the project's; and that a project is deleted: its addresses go with it.
LOOKED_UP: dict[WebhookEvent, Callable[[Webhook, datetime], Iterator[_Happening]]] = {
    WebhookEvent.RELEASE: _releases,
    WebhookEvent.ROUND: _rounds,
    WebhookEvent.BUDGET: _budgets,
    WebhookEvent.LIMIT: _limits,
    WebhookEvent.REQUEST: _requests,
    WebhookEvent.UPLOAD: _uploads,
    WebhookEvent.GATE: _gates,
    WebhookEvent.SETTINGS: _settings,
    WebhookEvent.ARCHIVED: _archived,
    WebhookEvent.REPORT: _reports,
    WebhookEvent.REVIEW: _reviews,
    WebhookEvent.WAITING: _waiting,
    WebhookEvent.FAILED: _failures,
    WebhookEvent.FINISHED: _finished,
    WebhookEvent.MEMBER: _members,
    WebhookEvent.GUIDELINES: _guidelines,
    WebhookEvent.FORGOTTEN: _forgotten,
}
