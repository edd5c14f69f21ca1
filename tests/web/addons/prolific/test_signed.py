import time
from datetime import timedelta

import jwt
import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from addons.prolific.services import accounts as signing_keys
from annotation.errors import InvalidConfiguration
from annotation.models.joining import CrowdLink, CrowdParticipant, PlatformKeys
from annotation.people.services import crowd_links
from annotation.people.services.crowd_links import TOKEN, is_for
from tests.prolific_server import KEYS_AT
from tests.studies import connect, open_study, turn

pytestmark = pytest.mark.django_db
PID = "5f00000000000000000000aa"
SENT = {"PROLIFIC_PID": PID, "STUDY_ID": "study1", "SESSION_ID": "session1"}


def make_link(project, manager, **changes):
    values = {"platform": "prolific", "study": "study1", "answers_wanted": 2, "maximum_participants": 5}
    values |= {"lifetime": timedelta(days=1), "signed": True}
    return crowd_links.create_link(project=project, owner=manager, **(values | changes))


@pytest.fixture
def address(server, crowd, manager):
    _link, secret = make_link(crowd, manager)
    signing_keys.fetch_due_keys()
    return reverse("annotation:crowd_start", args=[secret])


@pytest.fixture
def audience(settings):
    return settings.SITE_URL


def age(**ages):
    PlatformKeys.objects.update(**{name: Now() - value for name, value in ages.items()})


def begin(address, query):
    """Look and press; return the status of each, and what the first page says."""
    client = Client()
    looked = client.get(address, query)
    return looked.status_code, client.post(address, query).status_code, looked.content.decode()


def test_whom_prolific_signs_for_gets_in_and_comes_back_as_the_same(server, address, audience):
    query = SENT | {TOKEN: server.sign(SENT, audience)}
    client = Client()
    shown = client.get(address, query)
    assert f'name="{TOKEN}" value="{query[TOKEN]}"' in shown.content.decode()
    assert client.post(address, query).status_code == 302
    assert begin(address, query)[:2] == (200, 302)
    assert begin(address, SENT | {TOKEN: server.sign(SENT, [audience], exp=int(time.time()) - 30)})[:2] == (200, 302)
    assert CrowdParticipant.objects.count() == 1


def test_what_is_signed_need_not_stand_in_the_address_again(server, address, audience):
    assert begin(address, {TOKEN: server.sign(SENT, audience)})[:2] == (200, 302)
    link = CrowdLink.objects.get()
    digest = crowd_links.pid_digest(project=link.project, platform="prolific", pid=PID)
    assert bytes(CrowdParticipant.objects.get().pid_digest) == digest


OTHER = SENT | {"STUDY_ID": "study2"}
REFUSED = {
    "no token": (lambda *_: "", "did not sign this address"),
    "a forged id": (lambda server, site: server.sign(SENT | {"PROLIFIC_PID": "b" * 24}, site), "did not sign"),
    "another study's": (lambda server, site: server.sign(OTHER, site), "did not sign"),
    "another session's": (lambda server, site: server.sign(SENT | {"SESSION_ID": "s2"}, site), "did not sign"),
    "a forged signature": (lambda server, site: server.sign(SENT, site, key="a forger's"), "did not sign"),
    "no signature": (
        lambda _server, site: jwt.encode({"aud": site, "prolific": SENT}, None, algorithm="none"),
        "did not sign",
    ),
    "a shared secret": (
        lambda _server, site: jwt.encode({"aud": site}, "s" * 32, algorithm="HS256", headers={"kid": "first"}),
        "did not sign",
    ),
    "over": (
        lambda server, site: server.sign(SENT, site, exp=int(time.time()) - 120),
        "has expired",
    ),
    "not yet": (
        lambda server, site: server.sign(SENT, site, iat=int(time.time()) + 120),
        "has expired",
    ),
    "for ever": (lambda server, site: server.sign(SENT, site, exp=None), "did not sign"),
    "another site's": (lambda server, _site: server.sign(SENT, "https://tool.example.org"), "another site"),
    "without ids": (lambda server, site: server.sign(SENT, site, prolific="all"), "did not sign"),
    "no token at all": (lambda *_: "a.b.c", "did not sign"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nobody_else_gets_in_and_each_is_told_why(server, address, audience, caplog, case):
    make, why = REFUSED[case]
    token = make(server, audience)
    looked, pressed, page = begin(address, SENT | {TOKEN: token})
    assert (looked, pressed) == (403, 403)
    assert why in page
    assert not CrowdParticipant.objects.exists()
    assert PID not in caplog.text
    assert not token or token not in caplog.text


def test_a_key_nobody_has_is_no_key(server, address, audience):
    server.key_names.append("invented")
    token = server.sign(SENT, audience)
    looked, _pressed, page = begin(address, SENT | {TOKEN: token})
    assert looked == 403
    assert "did not sign" in page
    assert not PlatformKeys.objects.get().is_wanted


def test_whoever_comes_for_another_study_is_sent_back(server, address, audience):
    assert begin(address, OTHER | {TOKEN: server.sign(OTHER, audience)})[0] == 410


def test_a_new_key_is_fetched_once_somebody_comes_with_it(server, address, audience):
    before = server.sign(SENT, audience)
    server.key_names[:] = ["second"]
    query = SENT | {TOKEN: server.sign(SENT, audience)}
    age(fetched_at=timedelta(minutes=10))
    waits = Client().get(address, query)
    assert (waits.status_code, waits.headers["Retry-After"]) == (503, "30")
    signing_keys.fetch_due_keys()
    assert len(server.requests("GET", KEYS_AT)) == 1
    age(asked_at=timedelta(minutes=2))
    signing_keys.fetch_due_keys()
    assert begin(address, query)[:2] == (200, 302)
    assert begin(address, SENT | {TOKEN: before})[0] == 403


def test_keys_outlive_an_outage_but_not_for_long(server, address, audience):
    query = SENT | {TOKEN: server.sign(SENT, audience)}
    server.faults.append(("GET", KEYS_AT, 503))
    age(fetched_at=timedelta(hours=13), asked_at=timedelta(hours=13))
    signing_keys.fetch_due_keys()
    assert not server.faults
    assert begin(address, query)[0] == 200
    age(fetched_at=timedelta(days=3))
    assert begin(address, query)[0] == 503


def test_keys_are_fetched_only_where_a_link_asks_for_them(server, crowd, manager):
    make_link(crowd, manager, signed=False)
    signing_keys.fetch_due_keys()
    assert not PlatformKeys.objects.exists()
    _link, secret = make_link(crowd, manager)
    assert begin(reverse("annotation:crowd_start", args=[secret]), SENT | {TOKEN: server.sign(SENT, "")})[0] == 503
    for _ in range(3):
        signing_keys.fetch_due_keys()
    assert len(server.requests("GET", KEYS_AT)) == 1
    assert [key["kid"] for key in PlatformKeys.objects.get().keys] == ["first"]


def test_a_signature_is_asked_for_where_there_is_one(server, crowd, manager, settings, client):
    client.force_login(manager)
    form = {"platform": "mturk", "answers_wanted": 1, "maximum_participants": 1, "days": 1, "signed": "on"}
    refused = client.post(reverse("annotation:crowd_links", args=[crowd.slug]), form)
    assert refused.status_code == 422
    assert "Only Prolific signs" in refused.content.decode()
    with pytest.raises(InvalidConfiguration, match="Only Prolific signs"):
        make_link(crowd, manager, platform="mturk")
    made = client.post(reverse("annotation:crowd_links", args=[crowd.slug]), form | {"platform": "prolific"})
    assert "Only who Prolific signs for" in made.content.decode()
    with pytest.raises(IntegrityError, match="annotation_crowdlink_signed"), transaction.atomic():
        CrowdLink.objects.update(platform="mturk")
    settings.PROLIFIC_URL = ""
    with pytest.raises(InvalidConfiguration, match="No administrator"):
        make_link(crowd, manager)


def test_a_study_of_ours_is_opened_with_a_secured_address(server, crowd, manager):
    connect(crowd, manager)
    study = turn(open_study(crowd, manager, signed=True))
    assert server.studies[study.external_id]["is_external_study_url_secure"] is True
    assert study.link.signed


@pytest.mark.parametrize(
    ("audience", "fits"),
    [
        ("https://site.example.org/crowd/x/?a=1", True),
        ("site.example.org", True),
        (["https://other.example.org", "https://SITE.example.org:443"], True),
        ("https://site.example.org:8443", False),
        ("https://site.example.org.evil.example", False),
        ("https://evil.example/?https://site.example.org", False),
        ("https://[", False),
        ("", False),
        (None, False),
    ],
)
def test_what_is_signed_is_for_this_site(audience, fits):
    assert is_for(audience, "https://site.example.org") is fits
