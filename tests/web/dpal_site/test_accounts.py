import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Membership, Role
from annotation.models.history import Action
from annotation.models.joining import Invitation
from annotation.people.services import invitations
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_limits")]
PASSWORD = "correct horse battery"
NEW_PASSWORD = {"password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def open_site(settings):
    settings.SIGNUP = "open"


def log_in(client: Client, login: str, password: str = PASSWORD):
    return client.post(reverse("login"), {"login": login, "password": password})


def sign_up(client: Client, email: str):
    return client.post(reverse("account_signup"), {"email": email, "password1": PASSWORD, "password2": PASSWORD})


def link_in(message) -> str:
    return re.search(r"http://testserver(/\S+)", message.body)[1]


def invite(client: Client, project) -> str:
    _, secret = invitations.create_invitation(
        project=project, role=Role.ANNOTATOR, maximum_uses=9, lifetime=timedelta(days=1), owner=project.created_by
    )
    address = reverse("annotation:join", args=[secret])
    assert client.get(address).status_code == 200
    return address


def reset(client: Client, email: str) -> str:
    client.post(reverse("account_reset_password"), {"email": email})
    page = client.get(link_in(mail.outbox[0]), follow=True)
    client.post(page.request["PATH_INFO"], {"password1": "another long one", "password2": "another long one"})
    return "another long one"


def test_by_invitation_unless_the_site_is_open(settings):
    assert "By invitation" in sign_up(Client(), "ann@example.org").content.decode()
    assert not User.objects.exists()
    settings.SIGNUP = "open"
    assert sign_up(Client(), "ann@example.org").status_code == 302
    assert User.objects.count() == 1


def test_an_account_opens_once_its_email_is_confirmed(open_site):
    client = Client()
    sign_up(client, "ann@example.org")
    assert log_in(Client(), "ann@example.org")["Location"] == reverse("account_email_verification_sent")
    client.post(link_in(mail.outbox[0]))
    assert EmailAddress.objects.get().verified
    assert log_in(Client(), "ann@example.org")["Location"] == reverse("annotation:projects")


@pytest.mark.parametrize("backend", ["filebased", "locmem"])
def test_where_mail_stays_every_page_after_a_letter_says_who_has_it(open_site, settings, tmp_path, backend):
    settings.EMAIL_FILE_PATH = tmp_path
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    client = Client()
    email = {"email": "ann@example.org"}
    opened = client.post(reverse("account_signup"), {**NEW_PASSWORD, **email}, follow=True)
    again = client.post(reverse("login"), {"login": "ann@example.org", "password": PASSWORD}, follow=True)
    forgotten = client.post(reverse("account_reset_password"), email, follow=True)
    stays = backend == "filebased"
    for page in (opened, again, forgotten):
        text = " ".join(page.content.decode().split())
        assert ("This site sends no mail: ask the" in text) == stays
        assert text.count("This site sends no mail: ask the") == stays, "once is enough"
        assert ("sent" in text.split("<main")[1]) != stays
        assert "var/mail" not in text
    assert not EmailAddress.objects.get().verified
    assert len(list(tmp_path.iterdir())) == (2 if stays else 0)


def test_an_invitation_leads_into_the_project_once_the_email_is_confirmed():
    project, client = make_project(), Client()
    invitation = invite(client, project)
    client.post(reverse("account_signup") + f"?next={invitation}", {**NEW_PASSWORD, "email": "ann@example.org"})
    assert not Membership.objects.filter(user__email="ann@example.org").exists()
    confirmed = client.post(link_in(mail.outbox[0]))
    assert confirmed["Location"] == reverse("annotation:project", args=[project.slug])
    assert "Welcome to the project." in client.get(confirmed["Location"], follow=True).content.decode()
    assert Membership.objects.get(user__email="ann@example.org").role == Role.ANNOTATOR
    assert Action.objects.get(route="annotation:join").project == project


def test_a_mail_read_in_another_browser_leads_to_the_invitation_and_lets_nobody_in():
    project, client = make_project(), Client()
    invitation = invite(client, project)
    client.post(reverse("account_signup") + f"?next={invitation}", {**NEW_PASSWORD, "email": "ann@example.org"})
    elsewhere = Client()
    link = link_in(mail.outbox[0])
    assert invitation in elsewhere.get(link).content.decode()
    assert elsewhere.post(link, {"next": invitation})["Location"] == invitation
    assert "_auth_user_id" not in elsewhere.session
    assert not Membership.objects.filter(user__email="ann@example.org").exists()
    elsewhere.get(invitation)
    entered = elsewhere.post(reverse("login"), {"login": "ann@example.org", "password": PASSWORD, "next": invitation})
    assert entered["Location"] == reverse("annotation:project", args=[project.slug])
    assert Membership.objects.filter(user__email="ann@example.org", project=project).exists()


def test_a_login_that_only_points_at_an_invitation_joins_nobody():
    project = make_project()
    invitation = invite(Client(), project)
    ann = User.objects.create_user("ann", password=PASSWORD)
    entered = Client().post(reverse("login"), {"login": "ann", "password": PASSWORD, "next": invitation})
    assert entered["Location"] == invitation
    client = Client()
    client.get(invitation)
    Invitation.objects.update(revoked_at=timezone.now())
    entered = client.post(reverse("login"), {"login": "ann", "password": PASSWORD, "next": invitation})
    assert entered["Location"] == invitation
    assert not Membership.objects.filter(user=ann).exists()


def test_a_password_set_by_mail_confirms_the_only_address(open_site):
    sign_up(Client(), "ann@example.org")
    mail.outbox.clear()
    assert reset(Client(), "ann@example.org") == "another long one"
    assert EmailAddress.objects.get().verified
    entered = log_in(Client(), "ann@example.org", "another long one")
    assert entered["Location"] == reverse("annotation:projects")


def test_of_several_addresses_a_password_set_by_mail_confirms_none():
    ann = User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)
    for email in ("ann@example.org", "second@example.org"):
        EmailAddress.objects.create(user=ann, email=email)
    reset(Client(), "second@example.org")
    assert not EmailAddress.objects.filter(verified=True).exists()


def test_an_account_an_administrator_opened_needs_no_email():
    User.objects.create_user("ann", password=PASSWORD)
    assert log_in(Client(), "ann")["Location"] == reverse("annotation:projects")


def test_the_second_factor_is_asked_for_also_by_the_administration():
    User.objects.create_superuser("ann", password=PASSWORD)
    client = Client()
    log_in(client, "ann")
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    page = client.get(reverse("mfa_activate_totp"))
    secret = page.context["form"].secret
    code = format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))
    client.post(reverse("mfa_activate_totp"), {"code": code})
    stored = Authenticator.objects.get(type="totp")
    assert secret not in str(stored.data)
    assert isinstance(stored.wrap(), TOTP)
    again = Client()
    assert log_in(again, "ann")["Location"].startswith(reverse("mfa_authenticate"))
    assert again.get(reverse("annotation:projects")).status_code == 302
    assert again.get(reverse("admin:index")).status_code == 302
    refused = again.post(reverse("mfa_authenticate"), {"code": "000000"})
    assert refused.status_code == 200
    assert "_auth_user_id" not in again.session
    cache.clear()
    code = format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))
    again.post(reverse("mfa_authenticate"), {"code": code})
    assert "_auth_user_id" in again.session
    straight = Client().post(reverse("admin:login"), {"username": "ann", "password": PASSWORD})
    assert straight.status_code == 302
    assert straight["Location"].startswith(reverse("login"))


def test_language_and_zone_are_kept_by_the_browser():
    client = Client()
    page = client.get("/preferences/?next=/login/")
    assert page.status_code == 200
    kept = client.post("/preferences/", {"language": "de", "zone": "Europe/Oslo", "next": "//evil.example"})
    assert kept["Location"] == reverse("annotation:projects")
    assert client.cookies["timezone"].value == "Europe/Oslo"
    page = client.get("/login/").content.decode()
    assert '<html lang="de"' in page
    assert "Anmelden" in page
    assert "Log in" not in page
    assert client.post("/preferences/", {"language": "xx", "zone": "Mars/Olympus"}).status_code == 422


def test_a_strange_zone_is_ignored():
    client = Client()
    client.cookies["timezone"] = "../../etc/passwd"
    assert client.get("/login/").status_code == 200
