import csv

import pytest
from django.template.defaultfilters import floatformat
from django.test import Client
from django.urls import reverse

from annotation.budget.words import epsilon_words
from annotation.models import Role
from annotation.people.services import members
from learner.estimators import abstaining
from learner.models import Grouping, SharesReport
from learner.releases.selectors import thresholds_of
from learner.shares import selectors, services
from tests.db.learner.shares.test_services import measured, released
from tests.factories import make_user
from tests.web.learner.channels.test_services import program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return remembered("two secret blocks with models", released)


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


def engineer_of(project):
    engineer = make_user("engineer")
    members.add_member(project=project, user=engineer, role=Role.ENGINEER)
    return engineer


def test_the_price_is_shown_before_it_is_asked_and_charged_then(project):
    web, page = signed_in(project.created_by), reverse("learner:shares", args=[project.slug])
    (offer,) = (one for one in selectors.offers(project) if one.block.block == 2)
    shown = web.get(page).content.decode()
    assert f"Ask for ε {epsilon_words(offer.epsilon)}" in " ".join(shown.split())
    assert web.post(page, {"block": "2", "grouping": "whole"}).status_code == 302
    report = SharesReport.objects.get(project=project)
    # While it is counted nothing else can be asked for.
    assert "Ask for ε" not in web.get(page).content.decode()
    services.measure_shares(report_id=report.pk)
    report.refresh_from_db()
    said = web.get(page).content.decode()
    for row in selectors.share_rows(report):
        assert f"{floatformat(row.value, 1)} %" in said


def test_an_engineer_reads_and_does_not_ask(project):
    measured(project)
    web, page = signed_in(engineer_of(project)), reverse("learner:shares", args=[project.slug])
    assert "95 % interval" in web.get(page).content.decode()
    assert "Ask for ε" not in web.get(page).content.decode()
    assert web.post(page, {"block": "2", "grouping": "whole"}).status_code == 403
    assert signed_in(make_user("stranger")).get(page).status_code == 404


@pytest.mark.parametrize("sent", [{"block": "2", "grouping": "age"}, {"block": "x", "grouping": "whole"}, {}])
def test_what_does_not_exist_is_not_asked_for(project, sent):
    web = signed_in(project.created_by)
    assert web.post(reverse("learner:shares", args=[project.slug]), sent).status_code == 404
    assert not SharesReport.objects.exists()


def test_the_plan_says_what_a_width_takes(project):
    web, page = signed_in(project.created_by), reverse("learner:shares", args=[project.slug])
    shown = " ".join(web.get(page, {"points": "8"}).content.decode().split())
    for need in selectors.needs(project, points=8.0):
        assert ("out of reach" if need.labels is None else f": {need.labels} labels") in shown
    for typed in ("", "x", "-1", "nan", "inf"):
        assert "labels, with" not in web.get(page, {"points": typed}).content.decode()


def test_thresholds_are_shown_with_their_release(project, monkeypatch):
    monkeypatch.setattr(abstaining, "WANTED", {0.5: 2, 0.99: 100})
    web, page = signed_in(project.created_by), reverse("learner:shares", args=[project.slug])
    (offer,) = selectors.offers(project, grouping=Grouping.CONFIDENCE)
    shown = " ".join(web.get(page, {"by": "confidence"}).content.decode().split())
    assert f"Ask for ε {epsilon_words(offer.epsilon)}" in shown
    assert web.post(page, {"block": "2", "grouping": "confidence"}).status_code == 302
    services.measure_shares(report_id=SharesReport.objects.get(project=project).pk)
    of_release = reverse("learner:release", args=[project.slug, 1])
    (found,) = (one for one in thresholds_of(SharesReport.objects.get()) if one.threshold is not None)
    for address in (page, of_release):
        assert floatformat(found.threshold, 3) in web.get(address).content.decode()
    reading = program(project, "models:read", role=Role.ENGINEER)
    (told,) = reading.get(f"/api/v1/projects/{project.slug}/shares").json()
    assert told["shares"] == []
    assert [one["threshold"] for one in told["thresholds"]] == [found.threshold, None]
    assert reading.get(f"/api/v1/projects/{project.slug}/shares/offers?grouping=confidence").json()[0]["width"] is None


def test_the_table_comes_as_a_file(project):
    report = measured(project)
    address = reverse("learner:shares_csv", args=[project.slug])
    lines = b"".join(signed_in(project.created_by).get(address).streaming_content).decode().splitlines()
    rows = list(csv.DictReader(lines))
    assert [float(row["percent"]) for row in rows] == [row.value for row in selectors.share_rows(report)]


def test_programs_see_prices_ask_and_read(project):
    asking = program(project, "projects:write", "models:read", role=Role.MANAGER)
    base = f"/api/v1/projects/{project.slug}/shares"
    (offer,) = (one for one in asking.get(f"{base}/offers").json() if one["block"] == 2)
    assert offer["can_pay"]
    answer = asking.post(base, {"block": 2}, content_type="application/json")
    assert answer.status_code == 202
    assert answer.json()["shares"] == []
    services.measure_shares(report_id=SharesReport.objects.get().pk)
    (found,) = asking.get(base).json()
    assert found["state"] == "done"
    assert all(one["low"] <= one["percent"] <= one["high"] for one in found["shares"])
    reading = program(project, "models:read", role=Role.ENGINEER)
    assert reading.get(base).status_code == 200
    assert reading.post(base, {"block": 2}, content_type="application/json").status_code == 403
