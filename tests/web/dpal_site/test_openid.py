"""Sign-in by OpenID Connect, against a small issuer that really listens."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from tests.openid_issuer import Issuer, listening_issuer

pytestmark = pytest.mark.django_db


@pytest.fixture
def issuer(settings) -> Iterator[str]:
    cache.clear()
    with listening_issuer(settings) as url:
        yield url


def go_to_issuer(client: Client) -> dict[str, str]:
    away = client.post(reverse("openid_connect_login", args=["oidc"]))
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away["Location"]).query).items()}
    Issuer.challenge = asked["code_challenge"]
    return asked


def come_back(client: Client, **query: str):
    return client.get(reverse("openid_connect_callback", args=["oidc"]), query)


def test_whom_the_issuer_knows_gets_an_account(issuer):
    client = Client()
    assert "Continue with Our house" in client.get(reverse("login")).content.decode()
    asked = go_to_issuer(client)
    assert asked["redirect_uri"] == "http://testserver/accounts/oidc/oidc/login/callback/"
    come_back(client, code="the-code", state=asked["state"])
    assert User.objects.get().email == "ann@example.org"
    assert client.session["_auth_user_id"] == str(User.objects.get().pk)
    again = Client()
    come_back(again, code="the-code", state=go_to_issuer(again)["state"])
    assert User.objects.count() == 1


def test_a_form_may_lead_to_the_issuer_and_to_nobody_else(issuer):
    policy = Client().get(reverse("login"))["Content-Security-Policy"]
    assert f"form-action 'self' {issuer};" in policy


def test_looking_at_the_address_logs_nobody_in(issuer):
    page = Client().get(reverse("openid_connect_login", args=["oidc"]))
    assert page.status_code == 200
    assert b'method="post"' in page.content


@pytest.mark.parametrize("wrong", [{"code": "other"}, {"state": "other"}])
def test_a_code_or_state_from_elsewhere_is_refused(issuer, wrong):
    client = Client()
    asked = go_to_issuer(client)
    come_back(client, **({"code": "the-code", "state": asked["state"]} | wrong))
    assert "_auth_user_id" not in client.session
    assert not User.objects.exists()


def test_the_same_email_alone_takes_nobodys_account_over(issuer):
    User.objects.create_user("ann", email="ann@example.org", password="correct horse battery")
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert "_auth_user_id" not in client.session


def test_a_site_that_goes_by_the_email_alone_would_be_taken_over(issuer, settings):
    """The test above can fail: with this setting the issuer's word about an email is a key to the account."""
    settings.SOCIALACCOUNT_EMAIL_AUTHENTICATION = settings.SOCIALACCOUNT_EMAIL_VERIFICATION = True
    User.objects.create_user("ann", email="ann@example.org", password="correct horse battery")
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert "_auth_user_id" in client.session
