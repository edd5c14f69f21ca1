import io
import json
import logging
from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, RequestFactory
from django.urls import get_resolver, reverse

from annotation.models import Role
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal_site.middleware import SECRET_PARTS
from dpal_site.operations import logs, security
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user
from tests.permission_scene import named_patterns

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
WRONG = "my secret of another site"


@pytest.fixture(autouse=True)
def quick(settings):
    # Passwords are hashed at every login; how slowly is another test's business.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()


@pytest.fixture
def lines():
    formatter = logs.logging_settings("json", "INFO")["formatters"]["lines"]
    written = []

    class Sink(logging.Handler):
        def emit(self, record):
            written.append(self.format(record))

    sink = Sink()
    sink.addFilter(logs.WithoutContent())
    sink.setFormatter(formatter["()"](**{key: value for key, value in formatter.items() if key != "()"}))
    logger = logging.getLogger(security.__name__)
    logger.addHandler(sink)
    yield written
    logger.removeHandler(sink)


@pytest.fixture
def everything():
    formatter = logs.logging_settings("json", "INFO")["formatters"]["lines"]
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    handler.addFilter(logs.WithoutContent())
    handler.setFormatter(formatter["()"](**{key: value for key, value in formatter.items() if key != "()"}))
    logging.getLogger().addHandler(handler)
    yield sink
    logging.getLogger().removeHandler(handler)


class TestSecretAddresses:
    """Invitations, crowd links and links in mails: whoever reads the logs must not come in by them."""

    SECRET = "SeCrEt-of-somebody-who-holds-it"

    def addresses(self):
        for name, pattern in named_patterns(get_resolver().url_patterns):
            secrets = SECRET_PARTS & set(pattern.pattern.converters)
            if secrets and not name.startswith(("learner:", "operations:")):
                yield reverse(name, kwargs=dict.fromkeys(pattern.pattern.converters, self.SECRET))
        yield f"/accounts/confirm-email/{self.SECRET}/"
        yield f"/accounts/password/reset/key/1a-{self.SECRET}/"
        # Nobody's address, and one letter short of somebody's.
        yield f"/crowd/{self.SECRET}/{self.SECRET}/"
        yield f"/joins/{self.SECRET}"

    @pytest.mark.slow
    def test_no_line_holds_one_whatever_is_answered(self, everything):
        addresses = list(self.addresses())
        assert {address.split("/")[1] for address in addresses} == {"join", "crowd", "accounts", "joins"}
        ann, told = Client(), Client(enforce_csrf_checks=True, raise_request_exception=False)
        ann.force_login(make_user("ann"))
        answered = Counter()
        for address in addresses:
            for client in (ann, told):
                for method in ("GET", "POST", "PUT", "TRACE"):
                    answered[client.generic(method, address).status_code] += 1
            # Somebody's guesses, until they are too many.
            answered.update(
                ann.get(address).status_code for _ in range(35) if address.startswith(("/join/", "/crowd/"))
            )
        assert {403, 404, 405, 410, 429} <= set(answered)
        said = everything.getvalue()
        assert said.count('"django.request"') > 20
        assert self.SECRET not in said

    def test_what_breaks_is_told_without_the_address(self, everything, monkeypatch):
        monkeypatch.setattr("annotation.people.views.idempotency.count_try", lambda **_: 1 / 0)
        Client(raise_request_exception=False).get(reverse("annotation:join", args=[self.SECRET]))
        (line,) = [json.loads(line) for line in everything.getvalue().splitlines() if '"exception"' in line]
        assert line["event"] == "Internal Server Error: /join/<str:secret>/"
        assert self.SECRET not in everything.getvalue()

    def test_the_files_of_such_a_page_are_asked_for_without_its_address(self):
        page = Client().get(reverse("annotation:join", args=[self.SECRET]))
        assert page["Referrer-Policy"] == "strict-origin"
        assert Client().get(reverse("login"))["Referrer-Policy"] == "same-origin"


def told(lines):
    events = [json.loads(line) for line in lines]
    lines.clear()
    return events


def kinds(lines):
    return [event["security"] for event in told(lines)]


def ann():
    return User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)


def log_in(client, password=PASSWORD, name="ann"):
    return client.post(reverse("login"), {"login": name, "password": password})


def test_a_login_is_told_with_its_factor_and_a_failed_one_without_what_was_typed(lines):
    person = ann()
    log_in(Client(), WRONG)
    failed, *others = told(lines)
    assert others == []
    assert failed["security"] == "login.failed"
    assert failed["account"] == security.account_digest("Ann ")
    assert {"timestamp", "request_id", "network", "route", "level"} <= set(failed)
    assert failed["timestamp"].endswith("Z")
    assert "user_id" not in failed
    client = Client()
    log_in(client)
    step, done = told(lines)
    assert (step["security"], step["factor"], step["user_id"]) == ("login.step", "password", person.pk)
    assert (done["security"], done["user_id"]) == ("login.done", person.pk)
    client.post(reverse("logout"))
    assert kinds(lines) == ["logout.done"]


def test_no_line_holds_a_name_a_password_or_an_address(lines):
    ann()
    log_in(Client(REMOTE_ADDR="192.0.2.77"), WRONG)
    log_in(Client(REMOTE_ADDR="192.0.2.77"), name=WRONG)
    log_in(Client(REMOTE_ADDR="192.0.2.77"))
    said = "".join(lines)
    assert "192.0.2.0/24" in said
    for hidden in (WRONG, PASSWORD, "192.0.2.77", "ann@example.org", '"ann"'):
        assert hidden not in said


def test_guessing_is_told_when_it_is_slowed_down(lines):
    ann()
    client = Client()
    for _ in range(6):
        log_in(client, WRONG)
    assert "limit.reached" in kinds(lines)


def test_what_was_refused_is_told_with_who_asked(lines):
    person, project = ann(), make_project()
    client = browser_of(person)
    told(lines)
    client.get(reverse("annotation:people", args=[project.slug]))
    client.get("/operations/")
    Client(enforce_csrf_checks=True).post(reverse("login"), {"login": "ann", "password": PASSWORD})
    hidden, refused, forged = told(lines)
    assert {event["security"] for event in (hidden, refused, forged)} == {"access.refused"}
    assert [event["status"] for event in (hidden, refused, forged)] == [404, 403, 403]
    assert [event.get("user_id") for event in (hidden, refused, forged)] == [str(person.pk)] * 2 + [None]
    assert project.slug not in json.dumps(hidden)


def test_a_token_is_told_from_its_making_to_its_end(lines, settings):
    person = ann()
    client = browser_of(person)
    told(lines)
    page = client.post(reverse("annotation:tokens"), {"name": "t", "scopes": [Scope.PROJECTS_READ], "days": "7"})
    secret = page.context["secret"]
    token = person.api_tokens.get()
    program = Client(headers={"Authorization": f"Bearer {secret}"})
    program.get("/api/v1/projects")
    program.get(f"/api/v1/projects/{make_project().slug}/ledger")
    settings.API_REQUESTS_PER_MINUTE = 0
    program.get("/api/v1/projects")
    client.post(reverse("annotation:revoke_token", args=[token.pk]))
    program.get("/api/v1/projects")
    said = "".join(lines)
    made, used, lacking, often, revoked, dead = told(lines)
    assert [event["security"] for event in (made, used, lacking, often, revoked, dead)] == [
        "token.made",
        "token.used",
        "access.refused",
        "limit.reached",
        "token.revoked",
        "access.refused",
    ]
    assert (used["token_id"], used["user_id"]) == (token.pk, person.pk)
    assert dead["status"] == 401
    assert secret not in said
    assert token.digest not in said


def test_what_administrators_and_managers_do_is_told(lines):
    manager, other = ann(), make_user("other")
    project = make_project(owner=manager)
    add_members(project, manager, role=Role.MANAGER)
    client = browser_of(manager)
    told(lines)
    client.post(reverse("annotation:set_state", args=[project.slug]), {"state": "paused"})
    root = User.objects.create_superuser("root")
    client.force_login(root)
    page = client.post(reverse("admin:auth_user_delete", args=[other.pk]), {"post": "yes"})
    assert page.status_code in (200, 302)
    events = told(lines)
    assert {"change.done", "administration.done"} <= {event["security"] for event in events}
    assert str(root.pk) in {str(event.get("user_id")) for event in events}


def test_a_new_password_and_a_new_address_are_told(lines):
    ann()
    client = Client()
    log_in(client)
    fields = {"oldpassword": PASSWORD, "password1": "another long one", "password2": "another long one"}
    client.post(reverse("account_change_password"), fields)
    assert "password.changed" in kinds(lines)
    client.post(reverse("account_reauthenticate"), {"password": "another long one"})
    client.post(reverse("account_email"), {"action_add": "", "email": "new@example.org"})
    assert "email.added" in kinds(lines)


def test_every_event_of_the_sign_in_library_has_a_listener():
    events = security.ACCOUNT_EVENTS | security.FACTOR_EVENTS
    assert [event for signal, event in events.items() if not signal.has_listeners()] == []


def test_words_a_client_sends_for_a_method_are_not_repeated(lines):
    Client().generic("GIMME\nlevel=error", "/login/")
    (event,) = told(lines)
    assert event["method"] == "other"


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.77", "192.0.2.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48"), ("", ""), ("nonsense", "")],
)
def test_a_network_tells_attacks_apart_and_not_people(address, network):
    assert security.network_of(RequestFactory(REMOTE_ADDR=address).get("/")) == network


def test_a_token_made_by_a_program_of_ours_is_no_event_of_a_request(lines):
    tokens.create_token(user=ann(), name="t", scopes=[Scope.PROJECTS_READ], lifetime=timedelta(days=1))
    assert lines == []
