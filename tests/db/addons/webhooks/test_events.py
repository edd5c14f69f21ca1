import json
from datetime import timedelta

import pytest
from django.utils import timezone

from addons.webhooks import events as webhook_events
from addons.webhooks import services as webhooks
from addons.webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from annotation.choices.rules import hides_selection
from annotation.models import Job, Query, Role, WorkState
from annotation.models.history import Action
from annotation.models.joining import CrowdLink
from annotation.models.limits import LimitRequest
from annotation.models.people import Membership
from annotation.models.retention import Forgetting
from annotation.people.services import members
from annotation.projects.services import lifecycle
from annotation.questions.services import guidelines, labels, queue
from annotation.signals import project_event
from learner.models import Round, TrainingRun
from privacy.ledger import services as ledger
from tests import learning
from tests.factories import make_annotators, make_user, open_records, write_settings

pytestmark = pytest.mark.django_db(transaction=True)
# Where the choice of questions is secret, these are never told.
HIDDEN = ("report", "review", "waiting")


@pytest.fixture
def project():
    return learning.open_trusted(make_user("lead"))


def listen(project, event):
    return Webhook.objects.create(project=project, url="https://hooks.example/", events=[event], salt=b"salt")


def told(hook):
    webhook_events.record_events()
    assert webhook_events.record_events() == 0
    said = [json.loads(one.body) for one in WebhookDelivery.objects.filter(webhook=hook).order_by("created_at")]
    assert all(body.pop("event") == hook.events[0] for body in said)
    return [{name: value for name, value in body.items() if name not in ("schema", "project")} for body in said]


def request(project):
    made = LimitRequest.objects.create(
        project=project,
        kind="alone",
        reason="secret words",
        requested_by=project.created_by,
        expires_at=timezone.now() + timedelta(days=1),
    )
    LimitRequest.objects.filter(pk=made.pk).update(
        state="withdrawn", decided_by=project.created_by, decided_at=timezone.now()
    )
    return [{"request": made.pk, "kind": "alone", "state": state} for state in ("open", "withdrawn")]


def member(project):
    """One joins, one is paused, one leaves; a crowd's participant does not count."""
    came = members.add_member(project=project, user=make_user("engineer"), role=Role.ENGINEER)
    gone = Membership.objects.create(project=project, user=make_user("gone"), role=Role.ENGINEER)
    members.remove_member(project=project, user=gone.user, role=Role.ENGINEER)
    for number in (came.pk, gone.pk):
        # The first is still here: a group gives the role, too.
        Action.objects.create(project=project, route="api:remove_member", target={"membership_id": number})
    Membership.objects.filter(pk=came.pk).update(paused_at=timezone.now())
    paused = [] if hides_selection(project.settings) else [{"change": "paused", "membership": came.pk}]
    joined = {"change": "joined", "membership": came.pk, "role": "engineer"}
    return [joined, *paused, {"change": "left", "membership": gone.pk}]


def new_guidelines(project):
    for text in ("first words", "other words"):
        guidelines.save_guidelines(project=project, text=text, examples=[], author=project.created_by)
    return [{"guidelines": project.guidelines_version}]


def open_link(project):
    later = timezone.now() + timedelta(days=1)
    manager = project.created_by
    CrowdLink.objects.create(
        project=project,
        digest="d",
        platform="prolific",
        answers_wanted=1,
        completion_code="code",
        maximum_participants=3,
        expires_at=later,
        created_by=manager,
    )


def review(project):
    open_records(project, 2)
    dispute(project)
    return [{}]


def dispute(project):
    (person,) = make_annotators(project, 1)
    label = labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=0)
    Query.objects.filter(pk=label.query_id).update(state="disputed")


def waiting(project):
    learning.fill_trusted(project, number=60)
    ledger.change_account_limits(
        account=project.pool_account, epsilon_limit=1e-6, delta_limit=1e-12, actor=project.created_by, reason="less"
    )
    return [{"step": "cannot_pay"}]


def failed(project):
    """A round, three jobs and a training fail; one job was cancelled."""
    ended = {"project": project, "state": WorkState.FAILED, "finished_at": timezone.now()}
    gate, compared, _stopped = (
        Job.objects.create(kind=kind, error="secret words", cancelled_by=by, **ended)
        for kind, by in (("gate", ""), ("compare", ""), ("import", "lead"))
    )
    block = 1 if hides_selection(project.settings) else None
    strategy = "secret_sample" if block else "random"
    Round.objects.create(number=1, strategy=strategy, block=block, requested=5, **ended)
    TrainingRun.objects.create(version=4, last_consensus_id=0, labels_used=0, **ended)
    always = [{"work": "round", "round": 1}, {"work": "gate", "job": str(gate.pk)}]
    if hides_selection(project.settings):
        return always
    return [*always, {"work": "compare", "job": str(compared.pk)}, {"work": "training", "version": 4}]


def finished(project):
    """A file, a comparison and a simulation are done; an upload has an event of its own, and one failed."""
    kinds = ("export", "compare", "simulate", "import")
    made = [
        Job.objects.create(project=project, kind=kind, state=WorkState.DONE, finished_at=timezone.now())
        for kind in kinds
    ]
    Job.objects.create(project=project, kind="export", state=WorkState.FAILED, finished_at=timezone.now())
    told_of = made[2:3] if hides_selection(project.settings) else made[:3]
    return [{"work": job.kind, "job": str(job.pk)} for job in told_of]


def forgotten(project):
    job = Job.objects.create(project=project, kind="forget", state=WorkState.DONE, finished_at=timezone.now())
    made = Forgetting.objects.create(project=project, job=job, reference="r", actor="lead", finished_at=timezone.now())
    return [{"forgetting": made.pk}]


def archived(project):
    lifecycle.archive_project(project=project)
    lifecycle.unarchive_project(project=project)
    return [{"state": "archived"}, {"state": "paused"}]


HAPPENED = {
    "request": request,
    "member": member,
    "guidelines": new_guidelines,
    "review": review,
    "waiting": waiting,
    "failed": failed,
    "finished": finished,
    "forgotten": forgotten,
    "archived": archived,
}


@pytest.mark.parametrize("event", HAPPENED)
@pytest.mark.parametrize("hides", [False, True], ids=["open", "secret"])
def test_what_happened_is_told_once_by_numbers_and_states(project, event, hides):
    if hides:
        write_settings(project, selection="secret_sample", selection_rate=0.1)
    hook = listen(project, event)
    expected = HAPPENED[event](project)
    assert told(hook) == ([] if hides and event in HIDDEN else expected)


@pytest.fixture
def crowd():
    return learning.open_crowd(make_user("head"))


@pytest.mark.parametrize("event", HIDDEN)
def test_where_the_choice_is_secret_what_would_tell_it_is_refused(project, settings, event):
    settings.WEBHOOK_HOSTS = ["hooks.example"]
    webhooks.add_webhook(project=project, url="https://hooks.example/", events=[event])
    write_settings(project, selection="secret_sample", selection_rate=0.1)
    with pytest.raises(webhooks.WebhookRefused, match="Not with secret selection"):
        webhooks.add_webhook(project=project, url="https://hooks.example/", events=[event, "round"])


def test_a_signal_is_written_down_for_those_who_chose_its_event(crowd):
    hook, _other = listen(crowd, "study"), listen(crowd, "round")
    for number, state in enumerate(("ACTIVE", "PAUSED")):
        facts = {"study": 1, "state": state}
        project_event.send(sender=None, project=crowd, event="study", subject=f"study 1 {number}", facts=facts)
    assert [one["state"] for one in told(hook)] == ["ACTIVE", "PAUSED"]
    assert WebhookDelivery.objects.count() == 2


def test_of_answers_that_wait_for_review_one_message_a_day_is_sent(project):
    hook = listen(project, "review")
    review(project)
    assert told(hook) == [{}]
    dispute(project)
    assert told(hook) == [{}]
    WebhookDelivery.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert told(hook) == [{}, {}]


def test_strangers_that_a_platform_sends_are_no_members(crowd):
    hook = listen(crowd, "member")
    open_link(crowd)
    stranger = make_user("stranger")
    stranger.crowd_participations.create(link=CrowdLink.objects.get(), pid_digest=b"p")
    Membership.objects.create(project=crowd, user=stranger, role=Role.ANNOTATOR)
    assert told(hook) == []


def test_nothing_is_told_of_a_deleted_project(project):
    hook = listen(project, "settings")
    lifecycle.archive_project(project=project)
    type(project).objects.filter(pk=project.pk).update(state="deleted")
    assert told(hook) == []


def test_every_event_has_a_place_that_tells_it():
    by_signal = {WebhookEvent.RETIRED, WebhookEvent.CHANNEL, WebhookEvent.STUDY}
    assert set(webhook_events.LOOKED_UP) | by_signal == set(WebhookEvent)
