from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from addons.prolific.errors import StudyRefused
from addons.prolific.models import CrowdStudy, CrowdSubmission, CrowdVerdict, PlatformAccount, StudyStep, VerdictKind
from addons.prolific.services import accounts, following, studies
from annotation.models import Membership
from annotation.models.joining import CrowdLink
from annotation.people.services import crowd_links
from annotation.signals import project_event
from annotation.work.services import tokens
from tests.prolific_server import TOKEN
from tests.studies import come, connect, open_study, publish, turn

pytestmark = pytest.mark.django_db
REASON = (
    "Of ten questions whose answer is known, nine were missed, which the first page said would count. Thank you anyway."
)


def test_a_draft_is_opened_with_what_was_written_down_and_nothing_else(server, study):
    turn(study)
    (sent,) = server.requests("POST", "/api/v1/studies/")
    assert study.external_id in server.studies
    assert (study.state, study.salt) == ("UNPUBLISHED", None)
    link = CrowdLink.objects.get(pk=study.link_id)
    assert link.study == study.external_id
    assert sent["completion_codes"][0]["code"] == link.completion_code
    assert (sent["reward"], sent["total_available_places"], sent["estimated_completion_time"]) == (200, 4, 6)
    address = sent["external_study_url"]
    assert address.endswith("/?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}")
    token = address.split("/crowd/")[1].split("/")[0]
    assert crowd_links.find_link(token=token) == link


def test_a_draft_that_waits_while_keys_are_replaced_has_the_link_it_was_made_with(server, study, settings):
    settings.SECRET_KEY = "another key of the same length, more or less"
    tokens.replace_outgoing_key(kept=timedelta(days=1))
    turn(study)
    (sent,) = server.requests("POST", "/api/v1/studies/")
    token = sent["external_study_url"].split("/crowd/")[1].split("/")[0]
    assert crowd_links.find_link(token=token).pk == study.link_id


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_an_opening_whose_answer_was_lost_is_looked_up_and_never_done_twice(server, study, fault):
    server.faults.append(("POST", "/api/v1/studies/", fault))
    turn(study)
    assert (study.external_id, study.state) == ("", "")
    assert "cannot be read" in study.fault
    assert study.next_at > timezone.now()
    turn(study)
    assert list(server.studies) == [study.external_id]
    assert study.fault == ""


def test_a_study_is_published_paused_started_and_stopped(server, published):
    told = []

    def hear(project, event, subject, facts, **_sent):
        told.append((project, event, facts))

    project_event.connect(hear)
    assert published.state == "ACTIVE"
    for step, state in (("PAUSE", "PAUSED"), ("START", "ACTIVE"), ("STOP", "AWAITING REVIEW")):
        studies.want_step(study=published, step=StudyStep(step))
        turn(published)
        assert (published.state, published.wanted) == (state, "")
    project_event.disconnect(hear)
    states = ("PAUSED", "ACTIVE", "AWAITING REVIEW")
    assert told == [(published.project, "study", {"study": published.pk, "state": state}) for state in states]
    moves = server.requests("POST", "/api/v1/studies/.*/transition/")
    assert [move["action"] for move in moves] == ["PUBLISH", "PAUSE", "START", "STOP"]
    assert CrowdLink.objects.get(pk=published.link_id).revoked_at is not None
    with pytest.raises(StudyRefused, match="does not allow"):
        studies.want_step(study=published, step=StudyStep.PUBLISH)


def test_a_publication_whose_answer_was_lost_is_not_asked_for_again(server, study):
    turn(study)
    studies.want_step(study=study, step=StudyStep.PUBLISH)
    server.faults.append(("POST", ".*/transition/", "lost"))
    turn(study)
    assert (study.state, study.wanted) == ("UNPUBLISHED", "PUBLISH")
    turn(study)
    assert (study.state, study.wanted) == ("ACTIVE", "")
    assert len(server.requests("POST", ".*/transition/")) == 1


def test_without_balance_the_study_stays_a_draft_and_says_why(server, study):
    server.wallet = 799
    publish(study)
    assert (study.state, study.wanted) == ("UNPUBLISHED", "")
    assert study.fault == "Prolific refuses it: Not enough balance in the workspace."


def test_a_draft_that_is_refused_names_our_field(server, crowd, manager):
    connect(crowd, manager)
    study = turn(open_study(crowd, manager, reward_cents=10))
    assert study.fault == "Pay of a place: Prolific refuses it: The minimum reward per hour is 6.00."
    assert study.next_at is None
    studies.want_step(study=study, step=StudyStep.DISCARD)
    turn(study)
    assert (study.state, server.studies) == ("DISCARDED", {})


def test_a_draft_is_discarded_on_the_platform_too(server, study):
    turn(study)
    studies.want_step(study=study, step=StudyStep.DISCARD)
    turn(study)
    assert (study.state, server.studies) == ("DISCARDED", {})


def test_a_draft_nobody_asked_for_yet_is_discarded_here(server, study):
    studies.want_step(study=study, step=StudyStep.DISCARD)
    study.refresh_from_db()
    assert (study.state, study.next_at, server.asked) == ("DISCARDED", None, [])


def test_a_wrong_token_is_told_and_another_goes_on(server, study, crowd, manager):
    accounts.connect_account(project=crowd, token="another-token", fee_percent=50, actor=manager)
    accounts.check_account(project_id=crowd.pk)
    assert PlatformAccount.objects.get().fault == "API token: rejected by Prolific."
    turn(study)
    assert study.fault == "API token: rejected by Prolific."
    connect(crowd, manager)
    accounts.check_account(project_id=crowd.pk)
    study.refresh_from_db()
    assert study.next_at <= timezone.now()
    assert (turn(study).state, study.fault) == ("UNPUBLISHED", "")
    assert PlatformAccount.objects.get().currency == "GBP"


def test_the_token_lies_sealed(server, study):
    stored = PlatformAccount.objects.get().sealed_token
    assert TOKEN not in stored
    assert TOKEN not in repr(accounts.interface_of(PlatformAccount.objects.get()))


def test_another_currency_is_refused_before_anything_is_opened(server, study):
    server.currency = "USD"
    turn(study)
    assert study.fault == "The Prolific account pays in USD, the project in GBP."
    assert server.studies == {}


@pytest.mark.parametrize(("status", "words"), [(429, "rate-limiting"), (500, "HTTP 500"), (503, "HTTP 503")])
def test_a_busy_or_broken_platform_is_asked_again_with_growing_pauses(server, published, status, words):
    pauses = []
    for _ in range(3):
        server.faults.append(("GET", "/api/v1/studies/.*", status))
        turn(published)
        assert words in published.fault
        pauses.append(round((published.next_at - timezone.now()).total_seconds()))
    assert pauses == pytest.approx([30, 60, 120], abs=3)
    assert turn(published).fault == ""
    assert published.attempts == 0


def test_who_comes_is_kept_by_the_hash_of_the_link_and_never_by_name(server, published):
    participant = come(server, published, "ann")
    turn(published)
    (row,) = CrowdSubmission.objects.all()
    assert bytes(row.pid_digest) == bytes(participant.pid_digest)
    assert (row.state, row.has_code, published.places_taken) == ("AWAITING REVIEW", True, 1)
    assert "pid-of-ann" not in str(CrowdSubmission.objects.values())


def test_many_submissions_come_in_pages(server, published):
    for number in range(205):
        server.come(published.external_id, f"pid{number}", state="ACTIVE")
    turn(published)
    assert published.submissions.count() == 205


def test_complete_ones_are_approved_once_and_no_others(server, published, manager):
    come(server, published, "ann")
    come(server, published, "unfinished", done=False)
    paused = come(server, published, "paused")
    Membership.objects.filter(user=paused.user_id).update(paused_at=Now())
    server.come(published.external_id, "nobody-here", code="GUESSED")
    turn(published)
    assert studies.approve_complete(study=published, actor=manager) == 1
    assert studies.approve_complete(study=published, actor=manager) == 0
    turn(published)
    assert sorted(each["status"] for each in server.submissions.values()) == ["APPROVED"] + ["AWAITING REVIEW"] * 3
    assert server.wallet == 100_000 - 200
    assert published.approved == 1
    assert CrowdVerdict.objects.get().state == "done"


@pytest.mark.parametrize("fault", ["lost", "dead", 500, 429])
def test_an_approval_that_got_lost_pays_once(server, published, manager, fault):
    come(server, published, "ann")
    turn(published)
    studies.approve_complete(study=published, actor=manager)
    server.faults.append(("POST", "/api/v1/submissions/.*", fault))
    turn(published)
    assert CrowdVerdict.objects.get().state == "wanted"
    turn(published)
    assert CrowdVerdict.objects.get().state == "done"
    assert server.wallet == 100_000 - 200
    asked = server.requests("POST", "/api/v1/submissions/.*/transition/")
    assert len(asked) == 1


def test_one_refused_approval_does_not_hold_up_the_others(server, published, manager):
    come(server, published, "ann")
    come(server, published, "bob")
    turn(published)
    studies.approve_complete(study=published, actor=manager)
    first = next(iter(server.submissions.values()))
    first["status"] = "TIMED-OUT"
    turn(published)
    states = {verdict.state: verdict.fault for verdict in CrowdVerdict.objects.all()}
    assert states["refused"] == "Prolific refuses it: A submission that is TIMED-OUT cannot be decided on."
    assert states["done"] == ""


def test_a_rejection_says_why_at_length_and_the_words_are_forgotten(server, published, manager):
    come(server, published, "ann", done=False)
    turn(published)
    submission = published.submissions.get()
    values = {"submission": submission, "kind": VerdictKind.REJECT, "actor": manager}
    with pytest.raises(StudyRefused, match="100 to") as refused:
        studies.judge(**values, message="Too short.", category="FAILED_CHECK")
    assert refused.value.field == "message"
    with pytest.raises(StudyRefused, match="reason") as refused:
        studies.judge(**values, message=REASON, category="I LIKE IT NOT")
    assert refused.value.field == "category"
    studies.judge(**values, message=REASON, category="FAILED_CHECK")
    with pytest.raises(StudyRefused, match="already been decided"):
        studies.judge(**values, message=REASON, category="FAILED_CHECK")
    turn(published)
    (sent,) = server.requests("POST", "/api/v1/submissions/.*/transition/")
    assert sent == {"action": "REJECT", "rejection_category": "FAILED_CHECK", "message": REASON}
    assert (CrowdVerdict.objects.get().reason, CrowdVerdict.objects.get().state) == ("", "done")


@pytest.mark.parametrize("fault", ["lost", "dead"])
def test_a_return_is_asked_for_once(server, published, manager, fault):
    come(server, published, "ann", done=False)
    turn(published)
    submission = published.submissions.get()
    studies.judge(
        submission=submission, kind=VerdictKind.RETURN, message="Please return it.", category="", actor=manager
    )
    server.faults.append(("POST", ".*/request-return/", fault))
    turn(published)
    turn(published)
    assert server.requests("POST", ".*/request-return/") == [{"request_return_reasons": ["Please return it."]}]
    assert CrowdVerdict.objects.get().state == "done"


def test_two_workers_do_not_have_one_study(server, study):
    CrowdStudy.objects.filter(pk=study.pk).update(leased_until=timezone.now() + timedelta(minutes=1))
    following.follow_study(study_id=study.pk)
    assert server.asked == []
    CrowdStudy.objects.filter(pk=study.pk).update(leased_until=timezone.now() - timedelta(minutes=1))
    following.follow_study(study_id=study.pk)
    assert server.studies


def test_what_is_due_is_handed_out(server, study, crowd, manager):
    CrowdStudy.objects.update(next_at=timezone.now() + timedelta(hours=1))
    due = open_study(crowd, manager)
    sent = []
    following_send = following.send_on_commit
    following.send_on_commit = lambda task, **ids: sent.append(ids)
    try:
        following.follow_due()
    finally:
        following.send_on_commit = following_send
    assert sent == [{"study_id": due.pk}]


def test_who_came_is_forgotten_and_sums_stay(server, published, manager):
    come(server, published, "ann")
    turn(published)
    with pytest.raises(StudyRefused, match="not settled"):
        studies.forget_people(study=published)
    studies.approve_complete(study=published, actor=manager)
    turn(published)
    server.studies[published.external_id]["status"] = "COMPLETED"
    turn(published)
    studies.forget_people(study=published)
    published.refresh_from_db()
    assert (published.approved, CrowdSubmission.objects.count(), CrowdVerdict.objects.count()) == (1, 0, 0)
