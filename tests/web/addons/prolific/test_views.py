import logging

import pytest
from django.urls import reverse

from addons.prolific.models import CrowdStudy, CrowdVerdict, PlatformAccount
from tests.clients import browser_of
from tests.prolific_server import TOKEN
from tests.studies import come, connect, turn

pytestmark = pytest.mark.django_db
TYPED = {
    "name": "Voice queries",
    "description": "Say what each means.",
    "places": 4,
    "reward": "2.00",
    "minutes": 6,
    "answers_wanted": 2,
    "days": 3,
}


@pytest.fixture
def client(manager):
    return browser_of(manager)


def at(name, study_or_project, *more):
    project = getattr(study_or_project, "project", study_or_project)
    own = [study_or_project.pk] if isinstance(study_or_project, CrowdStudy) else []
    return reverse(f"prolific:{name}", args=[project.slug, *own, *more])


def test_a_token_is_stored_and_shown_nowhere(server, crowd, client, caplog):
    with caplog.at_level(logging.DEBUG):
        sent = client.post(at("connect_platform", crowd), {"token": TOKEN, "fee_percent": "42.8"})
        assert sent.status_code == 302
        page = client.get(at("studies", crowd)).content.decode()
        wrong = client.post(at("connect_platform", crowd), {"token": TOKEN + "!", "fee_percent": "101"})
    assert "A token is stored. Fee: 42.80 percent." in page
    assert wrong.status_code == 422
    log = client.get(reverse("annotation:log", args=[crowd.slug])).content.decode()
    assert "Connected or disconnected Prolific" in log
    for shown in (page, wrong.content.decode(), log, caplog.text):
        assert TOKEN not in shown
    configuration = client.get(reverse("annotation:configuration_file", args=[crowd.slug])).content.decode()
    assert TOKEN not in configuration
    client.post(at("connect_platform", crowd), {"forget": "yes"})
    assert not PlatformAccount.objects.exists()


def test_a_study_is_opened_published_and_followed(server, crowd, client, manager):
    connect(crowd, manager)
    opened = client.post(at("studies", crowd), TYPED)
    study = CrowdStudy.objects.get()
    assert opened["Location"] == at("study", study)
    turn(study)
    page = client.get(at("study", study)).content.decode()
    assert "20.00 GBP an hour at 6 minutes" in page
    assert "12.00 GBP" in page
    client.post(at("change_study", study), {"do": "PUBLISH"})
    turn(study)
    come(server, study, "ann")
    turn(study)
    page = client.get(at("study", study)).content.decode()
    assert "Approve 1 complete participation" in " ".join(page.split())
    assert "pid-of-ann" not in page
    client.post(at("change_study", study), {"do": "approve"})
    turn(study)
    listed = " ".join(client.get(at("studies", crowd)).content.decode().split())
    assert "1 of 4 places taken." in listed
    assert "3.00 of 12.00 GBP spent." in listed


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"places": 34}, "places", "exceeds the 100.00"),
        ({"reward": "1.005"}, "reward", "decimal"),
        ({"reward": "0"}, "reward", "0.01"),
        ({"minutes": 0}, "minutes", "greater than or equal to 1"),
        ({"name": ""}, "name", "required"),
    ],
)
def test_what_cannot_be_opened_is_refused_by_field(server, crowd, client, manager, change, field, words):
    connect(crowd, manager)
    refused = client.post(at("studies", crowd), TYPED | change)
    assert refused.status_code == 422
    assert words in " ".join(refused.context["form"].errors[field])
    assert not CrowdStudy.objects.exists()


def test_a_rejection_and_a_return_are_told(server, published, client):
    come(server, published, "ann", done=False)
    come(server, published, "bob", done=False)
    turn(published)
    first, second = published.submissions.order_by("pk")
    values = {"submission": first.pk, "kind": "REJECT", "category": "", "message": "No."}
    refused = client.post(at("judge_submission", published), values)
    assert refused.status_code == 422
    assert set(refused.context["verdict_form"].errors) == {"category", "message"}
    client.post(at("judge_submission", published), values | {"category": "NO_DATA", "message": "No answers came. " * 8})
    client.post(at("judge_submission", published), values | {"submission": second.pk, "kind": "RETURN"})
    assert set(CrowdVerdict.objects.values_list("kind", flat=True)) == {"REJECT", "RETURN"}
    foreign = client.post(at("judge_submission", published), values | {"submission": first.pk})
    assert "already been decided" in str(foreign.context["verdict_form"].errors)


def test_an_unclear_sheet_is_settled_by_a_manager(server, published, client, manager):
    come(server, published, "ann")
    turn(published)
    sheet = published.bonus_sheets.create(
        created_by=manager, state="unclear", external_id="s", paying_at=published.created_at
    )
    assert "They were paid" in client.get(at("study", published)).content.decode()
    client.post(at("settle_bonuses", published), {"came": "yes"})
    sheet.refresh_from_db()
    assert sheet.state == "paid"
