import re
from datetime import timedelta

import pytest
from allauth.account.forms import default_token_generator
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from annotation.models.joining import RateCount
from annotation.work.services.tokens import PREFIX, create_token
from dpal_site.accounts.logins import SessionStore, session_digest

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
QUICK = "django.contrib.auth.hashers.MD5PasswordHasher"


@pytest.fixture(autouse=True)
def quick(settings):
    # Passwords are hashed at every login; how slowly is the business of one test below.
    settings.PASSWORD_HASHERS = [QUICK]
    cache.clear()


@pytest.fixture
def ann():
    return User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)


def log_in(client, password=PASSWORD):
    return client.post(reverse("login"), {"login": "ann", "password": password})


def is_in(client):
    return "_auth_user_id" in client.session


def password_fields(client, settings):
    settings.SIGNUP = "open"
    pages = [client.get(reverse(name)) for name in ("login", "account_signup")]
    other = Client()
    log_in(other)
    pages += [other.get(reverse(name)) for name in ("account_change_password", "account_reauthenticate")]
    for page in pages:
        assert page.status_code == 200
        found = re.findall(r"<input[^>]*name=\"[^\"]*password[^\"]*\"[^>]*>", page.content.decode())
        assert found
        yield from found


def test_fields_for_passwords_are_masked_and_leave_the_browser_alone(ann, client, settings):
    for field in password_fields(client, settings):
        assert 'type="password"' in field
        assert not re.search(r"onpaste|readonly|maxlength|autocomplete=\"off\"", field), field
        assert re.search(r"autocomplete=\"(current|new)-password\"", field), field


def test_a_password_changes_with_the_old_one_only(ann):
    client = Client()
    log_in(client)
    fields = {"password1": "another long one", "password2": "another long one"}
    for old in ("", "not the old one"):
        assert client.post(reverse("account_change_password"), {"oldpassword": old, **fields}).status_code == 200
        assert User.objects.get().check_password(PASSWORD)
    client.post(reverse("account_change_password"), {"oldpassword": PASSWORD, **fields})
    assert User.objects.get().check_password("another long one")


def test_a_password_counts_to_its_last_character(ann):
    long = "Ab Cd-" * 200
    ann.set_password(long)
    ann.save()
    for nearly in (long[:-1], long.lower(), long + " ", long[:72], " " + long):
        cache.clear()
        RateCount.objects.all().delete()
        client = Client()
        log_in(client, nearly)
        assert not is_in(client), len(nearly)
    client = Client()
    log_in(client, long)
    assert is_in(client)


def test_a_link_of_a_reset_opens_once_and_for_an_hour(ann, monkeypatch, settings):
    def ask():
        mail.outbox.clear()
        cache.clear()
        Client().post(reverse("account_reset_password"), {"email": "ann@example.org"})
        return re.search(r"http://testserver(/\S+)", mail.outbox[0].body)[1]

    def opens(link):
        return "password1" in Client().get(link, follow=True).content.decode()

    link = ask()
    assert opens(link)
    later = default_token_generator._now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT + 1)
    with monkeypatch.context() as patch:
        patch.setattr(type(default_token_generator), "_now", lambda _self: later)
        assert not opens(link)
    client = Client()
    page = client.get(link, follow=True)
    client.post(page.request["PATH_INFO"], {"password1": "another long one", "password2": "another long one"})
    assert User.objects.get().check_password("another long one")
    assert not opens(link)


@pytest.mark.parametrize("sent", ["x@example.org\nBcc: all@example.org", "x@example.org\r\n\r\nhello", "\x00@b.cc"])
def test_a_line_end_in_an_address_sends_no_mail(sent, settings):
    settings.SIGNUP = "open"
    for name in ("account_signup", "account_reset_password"):
        Client().post(reverse(name), {"email": sent, "password1": PASSWORD, "password2": PASSWORD})
    assert not [message for message in mail.outbox if "all@example.org" in str(message.message())]
    assert all("\n" not in each for message in mail.outbox for each in message.to)


def test_every_page_of_somebody_logged_in_has_the_way_out(ann):
    client = Client()
    log_in(client)
    names = ("annotation:projects", "annotation:tokens", "account_email", "account_change_password", "mfa_index")
    for name in (*names, "usersessions_list", "preferences"):
        page = client.get(reverse(name)).content.decode()
        assert f'action="{reverse("logout")}"' in page, name


def test_keys_of_sessions_cannot_be_guessed(ann, monkeypatch):
    asked = []
    monkeypatch.setattr("secrets.choice", lambda letters: asked.append(len(letters)) or letters[0])
    store = SessionStore()
    store.create()
    assert len(store.secret) == 32
    # 32 draws of the system's random numbers among 36 characters: 165 bits.
    assert asked[-32:] == [36] * 32
    assert store.session_key == session_digest(store.secret)


def test_nothing_is_weaker_than_128_bits(ann, settings, turns_on_a_site):
    hasher = PBKDF2PasswordHasher()
    assert turns_on_a_site >= 600_000
    assert hasher.salt_entropy >= 128
    assert hasher.digest().digest_size * 8 >= 256
    assert len(settings.SECRET_KEY) >= 32

    _, secret = create_token(user=ann, name="t", scopes=["projects:read"], lifetime=timedelta(days=1))
    assert len(secret.removeprefix(PREFIX)) * 6 >= 256
