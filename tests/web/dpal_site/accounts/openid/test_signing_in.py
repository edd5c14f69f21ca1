from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from dpal_site.accounts.openid.issuer import NEEDED, IssuerRefused, Reason, sound_description
from tests.openid_issuer import KEY, KEY_ID, PERSON, PUBLIC, Issuer, listening_issuer, signed

pytestmark = pytest.mark.django_db


@pytest.fixture
def issuer(settings) -> Iterator[str]:
    cache.clear()
    with listening_issuer(settings) as url:
        yield url


def go_to_issuer(client: Client) -> dict[str, str]:
    away = client.post(reverse("openid_connect_login", args=["oidc"]))
    asked = {name: values[0] for name, values in parse_qs(urlsplit(away["Location"]).query).items()}
    Issuer.challenge, Issuer.nonce = asked["code_challenge"], asked["nonce"]
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
    # What is kept of the issuer's word is who it is, and neither a token nor the nonce.
    assert SocialAccount.objects.get().extra_data == {"userinfo": PERSON}


def test_a_form_may_lead_to_the_issuer_and_to_nobody_else(issuer):
    policy = Client().get(reverse("login"))["Content-Security-Policy"]
    assert f"form-action 'self' {issuer}" in policy.split("; ")


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


def forged(claims):
    return jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256", headers={"kid": KEY_ID})


def unsigned(claims):
    return jwt.encode(claims, None, algorithm="none", headers={"kid": KEY_ID})


def sealed_by_our_own_secret(claims):
    return jwt.encode(claims, "s" * 32, algorithm="HS256", headers={"kid": KEY_ID})


def named_otherwise(claims):
    return jwt.encode(claims, KEY, algorithm="ES256", headers={"kid": "of next year"})


def changed_afterwards(claims):
    return ".".join([*signed(claims | {"sub": "43"}).split(".")[:2], signed(claims).split(".")[2]])


# What an issuer, or somebody who speaks in its name, may do wrong: which document is changed or how the token is made.
WRONG = {
    "another login's": ("nonce", {"claims": {"nonce": "of somebody else"}}, signed),
    "no login's": ("nonce", {"claims": {"nonce": None}}, signed),
    "another site's": ("audience", {"claims": {"aud": "another site"}}, signed),
    "several sites', asked by none": ("audience", {"claims": {"aud": ["dpal", "another site"]}}, signed),
    "several sites', asked by another": (
        "audience",
        {"claims": {"aud": ["dpal", "another site"], "azp": "another site"}},
        signed,
    ),
    "asked by another": ("audience", {"claims": {"azp": "another site"}}, signed),
    "another issuer's": ("issuer", {"claims": {"iss": "https://other.example.org"}}, signed),
    "old": ("expired", {"claims": {"exp": 1_700_000_000}}, signed),
    "of the future": ("expired", {"claims": {"iat": 9_000_000_000, "exp": 9_000_000_300}}, signed),
    "without an end": ("token", {"claims": {"exp": None}}, signed),
    "without a person": ("token", {"claims": {"sub": None}}, signed),
    "an odd person's": ("token", {"claims": {"sub": "4\x002"}}, signed),
    "signed by somebody else": ("signature", {}, forged),
    "signed by nobody": ("signature", {}, unsigned),
    "signed by what we know, too": ("signature", {}, sealed_by_our_own_secret),
    "signed by a key nobody knows": ("signature", {}, named_otherwise),
    "changed afterwards": ("signature", {}, changed_afterwards),
    "none": ("token", {}, lambda claims: None),
    "nonsense": ("token", {}, lambda claims: "a.b.c"),
    "by keys that are none": ("document", {"keys": {"keys": "none"}}, signed),
    "by a broken key": ("signature", {"keys": {"keys": [{"kty": "EC", "kid": KEY_ID, "alg": "ES256"}]}}, signed),
    "by a key for something else": ("signature", {"keys": {"keys": [PUBLIC | {"use": "enc"}]}}, signed),
    "by a key for another algorithm": ("signature", {"keys": {"keys": [PUBLIC | {"alg": "ES384"}]}}, signed),
    "about somebody else": ("person", {"person": {"sub": "43"}}, signed),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_statement_that_is_not_for_this_login_lets_nobody_in(issuer, monkeypatch, caplog, wrong):
    reason, changed, sign = WRONG[wrong]
    monkeypatch.setattr(Issuer, "changed", changed)
    monkeypatch.setattr(Issuer, "sign", staticmethod(sign))
    client = Client()
    with caplog.at_level("INFO", "dpal_site.operations.security"):
        page = come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert (page.status_code, "_auth_user_id" in client.session) == (401, False)
    assert not User.objects.exists()
    assert not SocialAccount.objects.exists()
    assert str(Reason(reason).label) in page.content.decode()
    assert [line.reason for line in caplog.records if getattr(line, "security", "") == "login.refused"] == [reason]


def test_a_statement_for_several_sites_that_this_one_asked_for_lets_in(issuer, monkeypatch):
    monkeypatch.setattr(Issuer, "changed", {"claims": {"aud": ["dpal", "another site"], "azp": "dpal"}})
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert "_auth_user_id" in client.session


# What a description may say that is not this issuer's: its own name, or addresses where everybody can listen.
@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"issuer": "https://other.example.org"}, "issuer"),
        ({"issuer": None}, "issuer"),
        ({"jwks_uri": None}, "document"),
        ({"token_endpoint": "file:///etc/passwd"}, "document"),
    ],
)
def test_another_issuers_description_is_refused_before_anybody_goes_there(issuer, monkeypatch, described, reason):
    monkeypatch.setattr(Issuer, "changed", {"described": described})
    page = Client().post(reverse("openid_connect_login", args=["oidc"]))
    assert page.status_code == 401
    assert str(Reason(reason).label) in page.content.decode()


def test_a_description_that_changes_meanwhile_is_refused_at_the_return(issuer, monkeypatch):
    client = Client()
    state = go_to_issuer(client)["state"]
    monkeypatch.setattr(Issuer, "changed", {"described": {"issuer": "https://other.example.org"}})
    assert come_back(client, code="the-code", state=state).status_code == 401
    assert not User.objects.exists()


def test_an_issuer_by_tls_names_no_address_without(monkeypatch):
    plain = {"issuer": "https://issuer.example.org"} | dict.fromkeys(NEEDED, "http://issuer.example.org/a")
    with pytest.raises(IssuerRefused, match="document"):
        sound_description(plain, issuer="https://issuer.example.org")
    safe = plain | dict.fromkeys(NEEDED, "https://issuer.example.org/a")
    assert sound_description(safe, issuer="https://issuer.example.org") == safe


@pytest.mark.parametrize(
    ("told", "let_in"), [({}, False), ({"iss": "https://other.example.org"}, False), ({"iss": ""}, True)]
)
def test_a_code_says_whose_it_is_where_the_issuer_promises_so(issuer, monkeypatch, told, let_in):
    monkeypatch.setattr(Issuer, "changed", {"described": {"authorization_response_iss_parameter_supported": True}})
    client = Client()
    query = {"code": "the-code", "state": go_to_issuer(client)["state"]}
    come_back(client, **query, **{name: value or issuer for name, value in told.items()})
    assert ("_auth_user_id" in client.session) == let_in


def test_an_issuer_that_is_away_is_said_so(settings):
    cache.clear()
    with listening_issuer(settings):
        pass
    page = Client().post(reverse("openid_connect_login", args=["oidc"]))
    assert page.status_code == 401
    assert str(Reason.UNREACHABLE.label) in page.content.decode()


def test_a_visitor_adds_nothing_to_the_question(issuer):
    added = {"auth_params": "redirect_uri=https://evil.example.org/&nonce=known", "scope": "everything"}
    away = Client().post(f"{reverse('openid_connect_login', args=['oidc'])}?{urlencode(added)}")
    asked = parse_qs(urlsplit(away["Location"]).query)
    assert asked["redirect_uri"] == ["http://testserver/accounts/oidc/oidc/login/callback/"]
    assert set(asked["scope"][0].split()) == {"openid", "profile", "email"}
    assert len(asked["nonce"][0]) == 64


@pytest.mark.parametrize(("said", "confirmed"), [(True, True), ("true", True), ("false", False), (False, False)])
def test_an_address_is_confirmed_only_where_the_issuer_says_so(issuer, monkeypatch, said, confirmed):
    monkeypatch.setattr(Issuer, "changed", {"person": {"email_verified": said}})
    client = Client()
    come_back(client, code="the-code", state=go_to_issuer(client)["state"])
    assert EmailAddress.objects.get().verified == confirmed
