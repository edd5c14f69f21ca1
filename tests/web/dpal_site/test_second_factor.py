from datetime import timedelta

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from allauth.usersessions.models import UserSession
from cryptography.fernet import InvalidToken
from django.contrib.auth.models import Group, Permission, User
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse

from annotation.models import Membership, Role
from annotation.models.joining import CrowdParticipant
from annotation.people.services import crowd_links
from dpal_site.accounts import second_factor
from dpal_site.accounts.adapter import SecondFactorAdapter
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user
from tests.owning import as_owner

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
SEED = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


@pytest.fixture(autouse=True)
def asked_of_all(settings):
    settings.SECOND_FACTOR = frozenset({"all"})
    # Passwords are hashed at every login; how slowly is another test's business.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()


def ann(**fields):
    return User.objects.create_user("ann", email="ann@example.org", password=PASSWORD, **fields)


def log_in(client, name="ann"):
    return client.post(reverse("login"), {"login": name, "password": PASSWORD})


def code(seed=SEED):
    return format_hotp_value(hotp_value(seed, next(yield_hotp_counters_from_time())))


def led_away(client, address):
    answer = client.get(address)
    return answer.status_code == 302 and answer["Location"].startswith(reverse("second_factor"))


def set_up(client):
    client.post(reverse("account_reauthenticate"), {"password": PASSWORD})
    seed = client.get(reverse("mfa_activate_totp")).context["form"].secret
    assert client.post(reverse("mfa_activate_totp"), {"code": code(seed)}).status_code == 302
    return seed


class TestWhoHasNone:
    @pytest.mark.parametrize("name", ["annotation:projects", "annotation:tokens", "admin:index", "operations:work"])
    def test_sees_no_page_before_one_is_set_up(self, name):
        ann(is_staff=True, is_superuser=True)
        client = Client()
        log_in(client)
        assert led_away(client, reverse(name))

    def test_makes_no_token_and_changes_nothing(self):
        person = ann()
        client = Client()
        log_in(client)
        sent = client.post(reverse("annotation:tokens"), {"name": "t", "scopes": ["projects:read"], "days": "7"})
        assert sent["Location"] == reverse("second_factor")
        assert not person.api_tokens.exists()

    def test_a_part_of_a_page_leads_the_whole_page_away(self):
        ann()
        client = Client()
        log_in(client)
        answer = client.get(reverse("annotation:projects"), headers={"HX-Request": "true"})
        assert answer["HX-Redirect"].startswith(reverse("second_factor"))

    def test_is_led_to_a_page_that_says_what_to_do_and_then_back(self):
        ann()
        client = Client()
        log_in(client)
        page = client.get(reverse("annotation:tokens"), follow=True)
        text = page.content.decode()
        assert reverse("mfa_activate_totp") in text
        assert reverse("mfa_add_webauthn") in text
        assert f'href="{reverse("annotation:tokens")}"' in text
        set_up(client)
        assert client.get(reverse("second_factor"), {"next": reverse("annotation:tokens")})["Location"] == reverse(
            "annotation:tokens"
        )
        assert client.get(reverse("annotation:tokens")).status_code == 200

    def test_never_leaves_the_site_by_that_page(self):
        ann()
        client = Client()
        log_in(client)
        page = client.get(reverse("second_factor"), {"next": "https://evil.example/"})
        assert b"evil.example" not in page.content
        set_up(client)
        onward = client.get(reverse("second_factor"), {"next": "//evil.example/"})
        assert onward["Location"] == reverse("annotation:projects")

    def test_may_log_out_and_look_after_the_account(self):
        ann()
        client = Client()
        log_in(client)
        for name in ("account_email", "account_change_password", "mfa_index", "preferences"):
            assert not led_away(client, reverse(name)), name
        assert client.post(reverse("logout"))["Location"] == reverse("login")


class TestWhoIsAsked:
    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ("administrators", {"administrator"}),
            ("managers", {"opener", "manager"}),
            ("engineers", {"engineer"}),
            ("annotators", {"annotator"}),
            ("all", {"administrator", "opener", "manager", "engineer", "annotator", "nobody"}),
        ],
    )
    def test_by_role(self, settings, asked, expected):
        settings.SECOND_FACTOR = frozenset({asked})
        project = make_project()
        people = {"nobody": make_user("nobody"), "administrator": make_user("administrator", is_superuser=True)}
        people["opener"] = make_user("opener")
        people["opener"].user_permissions.add(Permission.objects.get(codename="add_project"))
        for role in (Role.MANAGER, Role.ENGINEER, Role.ANNOTATOR):
            people[role.value] = make_user(role.value)
            add_members(project, people[role.value], role=role)
        found = {name for name, person in people.items() if second_factor.is_asked_of(person)}
        # An administrator may open projects, so it is a manager, too.
        assert found - {"administrator"} == expected - {"administrator"}
        assert "administrator" in found or "administrator" not in expected

    def test_nobody_where_the_site_does_not_ask(self, settings):
        settings.SECOND_FACTOR = frozenset()
        ann()
        client = Client()
        log_in(client)
        assert client.get(reverse("annotation:projects")).status_code == 200

    def test_never_somebody_a_crowd_platform_sent(self):
        project = learning.open_crowd(make_user("owner"))
        link = project.crowd_links.create(
            digest="d" * 64,
            platform="prolific",
            answers_wanted=1,
            completion_code="CODE",
            maximum_participants=1,
            expires_at=project.created_at + timedelta(days=1),
            created_by=project.created_by,
        )
        person = make_user("participant")
        CrowdParticipant.objects.create(link=link, user=person, pid_digest=b"d" * 16)
        assert not second_factor.is_asked_of(person)
        assert second_factor.is_asked_of(make_user("other"))

    @pytest.mark.parametrize("becomes", ["opener", "staff", "superuser", "engineer", "annotator", "in a group"])
    def test_everybody_means_a_participant_as_well_who_is_anything_else(self, becomes):
        """What a participant was made before the database refused it, or by hand, takes the exception away."""
        project = learning.open_crowd(make_user("owner"))
        link, _ = crowd_links.create_link(
            project=project,
            platform="prolific",
            study="",
            answers_wanted=1,
            maximum_participants=1,
            lifetime=timedelta(days=1),
            owner=project.created_by,
        )
        person = crowd_links.join(link=link, pid="somebody").user
        assert not second_factor.is_asked_of(person)
        if becomes == "opener":
            person.user_permissions.add(Permission.objects.get(codename="add_project"))
        elif becomes in ("staff", "superuser"):
            User.objects.filter(pk=person.pk).update(**{f"is_{becomes}": True})
        else:
            role = Role.ENGINEER if becomes == "engineer" else Role.ANNOTATOR
            elsewhere = make_project()
            with as_owner(), connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                for table in ("annotation_membership", "auth_user_groups"):
                    cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            if becomes == "in a group":
                group = Group.objects.create(name="Night shift")
                User.groups.through.objects.create(group=group, user=person)
            else:
                Membership.objects.create(project=elsewhere, user=person, role=role)
        assert second_factor.is_asked_of(User.objects.get(pk=person.pk))

    def test_a_role_given_later_counts_within_minutes(self, settings, monkeypatch):
        settings.SECOND_FACTOR = frozenset({"managers"})
        person = ann()
        client = Client()
        log_in(client)
        assert client.get(reverse("annotation:projects")).status_code == 200
        add_members(make_project(), person, role=Role.MANAGER)
        assert client.get(reverse("annotation:projects")).status_code == 200
        monkeypatch.setattr(second_factor, "VERDICT_SECONDS", 0)
        assert led_away(client, reverse("annotation:projects"))

    @pytest.mark.parametrize("vouched", [True, False])
    def test_who_comes_from_an_issuer_that_asks_itself(self, settings, vouched):
        settings.OIDC_ASKS_SECOND_FACTOR = vouched
        person = ann()
        client = browser_of(person)
        session = client.session
        session["account_authentication_methods"] = [{"method": "socialaccount", "at": 0, "provider": "oidc"}]
        session["account_authentication_methods_user"] = str(person.pk)
        session.save()
        assert led_away(client, reverse("annotation:projects")) is not vouched

    def test_a_password_is_vouched_for_by_no_issuer(self, settings):
        settings.OIDC_ASKS_SECOND_FACTOR = True
        ann()
        client = Client()
        log_in(client)
        assert led_away(client, reverse("annotation:projects"))


class TestTheLabelProcess:
    """Its database role may not read second factors: it believes the session, which another process wrote."""

    @pytest.mark.parametrize(
        ("said", "passes"), [("has", True), ("not asked", True), ("missing", False), (None, False)]
    )
    def test_it_believes_the_session_whatever_its_age(self, said, passes, settings):
        client = browser_of(ann())
        if said:
            session = client.session
            session[second_factor.VERDICT] = [said, 0]
            session.save()
        settings.SERVES_LABELS_ALONE = True
        assert led_away(client, "/projects/none/label/") is not passes


class TestFactors:
    def test_a_code_opens_once_and_for_half_a_minute(self, settings):
        person = ann()
        factor = TOTP.activate(person, SEED)
        now = code()
        assert factor.validate_code(now)
        assert not factor.validate_code(now)
        later = format_hotp_value(hotp_value(SEED, next(yield_hotp_counters_from_time()) - 2))
        assert not factor.validate_code(later)

    def test_a_recovery_code_opens_once_and_cannot_be_read_from_the_database(self):
        person = ann()
        TOTP.activate(person, SEED)
        codes = RecoveryCodes.activate(person)
        first, *others = codes.get_unused_codes()
        assert len(first) >= 8
        assert codes.validate_code(first)
        assert not codes.validate_code(first)
        stored = str(list(Authenticator.objects.values_list("data", flat=True)))
        assert SEED not in stored
        assert not any(one in stored for one in others)

    def test_seeds_are_the_systems_random_numbers(self, monkeypatch):
        asked = []
        monkeypatch.setattr("secrets.token_bytes", lambda size: asked.append(size) or b"s" * size)
        monkeypatch.setattr("secrets.token_hex", lambda size: asked.append(size) or "ab" * size)
        assert len(generate_totp_secret()) == 32
        RecoveryCodes.activate(ann())
        assert asked == [20, 40]

    def test_a_seal_that_was_touched_opens_nothing(self, settings):
        adapter = SecondFactorAdapter()
        sealed = adapter.encrypt(SEED)
        assert adapter.decrypt(sealed) == SEED
        for place in (8, 30, len(sealed) - 5):
            touched = sealed[:place] + ("A" if sealed[place] != "A" else "B") + sealed[place + 1 :]
            with pytest.raises(InvalidToken):
                adapter.decrypt(touched)
        settings.PSEUDONYM_KEY = "another key of the same length, more or less, it does not matter"
        with pytest.raises(InvalidToken):
            adapter.decrypt(sealed)

    def test_a_session_alone_sets_none_up_and_takes_none_away(self):
        person = ann()
        client = browser_of(person)
        for name in ("mfa_activate_totp", "mfa_add_webauthn"):
            assert client.get(reverse(name))["Location"].startswith(reverse("account_reauthenticate"))
        TOTP.activate(person, SEED)
        asked = client.post(reverse("mfa_deactivate_totp"))
        assert "reauthenticate" in asked["Location"]
        assert Authenticator.objects.filter(user=person, type="totp").exists()

    def test_a_new_factor_ends_every_other_session_and_is_told_by_mail(self, monkeypatch):
        person = ann()
        person.emailaddress_set.create(email=person.email, verified=True, primary=True)
        here, there = Client(), Client()
        log_in(here)
        log_in(there)
        # The test's own transaction is never committed.
        monkeypatch.setattr("django.db.transaction.on_commit", lambda call, **_options: call())
        set_up(here)
        assert there.get(reverse("account_email")).status_code == 302
        assert here.get(reverse("annotation:projects")).status_code == 200
        assert UserSession.objects.filter(user=person).count() == 1
        assert [message.to for message in mail.outbox] != []
        assert {address for message in mail.outbox for address in message.to} == {"ann@example.org"}
        assert SEED not in "".join(message.body for message in mail.outbox)

    def test_a_new_password_does_not_go_round_it(self):
        person = ann()
        person.emailaddress_set.create(email=person.email, verified=True, primary=True)
        TOTP.activate(person, SEED)
        client = Client()
        client.post(reverse("account_reset_password"), {"email": person.email})
        link = mail.outbox[0].body.split("http://testserver")[1].split()[0]
        page = client.get(link, follow=True)
        client.post(page.request["PATH_INFO"], {"password1": "another long one", "password2": "another long one"})
        answer = client.post(reverse("login"), {"login": "ann", "password": "another long one"})
        assert answer["Location"].startswith(reverse("mfa_authenticate"))
        assert "_auth_user_id" not in client.session
