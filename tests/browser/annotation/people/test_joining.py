import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from annotation.models import Label, Membership, Project, Role
from annotation.models.joining import CrowdParticipant, Invitation, Platform
from annotation.people.services import crowd_links, invitations
from annotation.questions.services import queue
from tests import learning
from tests.factories import make_candidates, make_user
from tests.keyboard import Keyboard

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_limits")]
PASSWORD = "correct horse battery"
DAY = timedelta(days=1)


@pytest.fixture
def address(live_server) -> str:
    # A passkey is bound to a name, and an address in numbers is none.
    return live_server.url.replace("127.0.0.1", "localhost")


@pytest.fixture
def keys(page: Page) -> Keyboard:
    return Keyboard(page)


@pytest.fixture
def crowd() -> Project:
    manager = make_user("manager")
    return learning.open_crowd(manager, classes=["sport", "music", "other"])


@pytest.fixture
def ann() -> User:
    return make_user("ann", password=PASSWORD, email="ann@example.org", last_login=timezone.now())


@pytest.fixture
def named(page: Page) -> Callable[..., Locator]:
    def find(role: str, name: str) -> Locator:
        return page.get_by_role(role, name=name, exact=True)

    return find


def link_in(message) -> str:
    return re.search(r"http://localhost\S+", message.body)[0]


def log_in(keys: Keyboard, login: str, password: str = PASSWORD) -> None:
    keys.type(keys.page.get_by_label("User name or email"), login)
    keys.type(keys.page.get_by_label("Password"), password)
    keys.submit()


def log_out(keys: Keyboard) -> None:
    keys.reach(keys.page.locator(".menu summary"))
    keys.page.keyboard.press("Enter")
    keys.follow(keys.page.get_by_role("button", name="Log out"), key="Space")


def to_second_factors(keys: Keyboard) -> None:
    keys.reach(keys.page.locator(".menu summary"))
    keys.page.keyboard.press("Space")
    keys.follow(keys.page.get_by_role("link", name="Your account"))
    keys.follow(keys.page.get_by_role("link", name="Second factor"))


def test_an_invitation_leads_into_the_project(page, address, crowd, keys, named):
    _, secret = invitations.create_invitation(
        project=crowd, role=Role.ANNOTATOR, maximum_uses=1, lifetime=DAY, owner=crowd.created_by
    )
    invitation = address + reverse("annotation:join", args=[secret])
    page.goto(invitation)
    keys.follow(named("link", "Open an account"))
    keys.type(page.get_by_label("Email"), "bob@example.org")
    keys.type(page.locator("[name=password1]"), PASSWORD)
    keys.type(page.locator("[name=password2]"), PASSWORD)
    keys.submit()
    assert not EmailAddress.objects.get().verified
    page.goto(link_in(mail.outbox[0]))
    keys.follow(named("button", "Confirm"), key="Space")
    assert EmailAddress.objects.get().verified
    expect(page.get_by_text("Welcome to the project.")).to_be_visible(timeout=30_000)
    assert Membership.objects.get(project=crowd, role=Role.ANNOTATOR).user.email == "bob@example.org"


def test_an_invitation_is_taken_by_logging_in(page, address, crowd, ann, keys, named):
    _, secret = invitations.create_invitation(
        project=crowd, role=Role.ANNOTATOR, maximum_uses=1, lifetime=DAY, owner=crowd.created_by
    )
    page.goto(address + reverse("annotation:join", args=[secret]))
    keys.follow(named("link", "Log in and join"))
    log_in(keys, "ann")
    expect(page.get_by_text("Welcome to the project.")).to_be_visible(timeout=30_000)
    assert Membership.objects.get(project=crowd, role=Role.ANNOTATOR).user == ann


def test_a_manager_makes_and_ends_links(page, address, crowd, keys, named):
    crowd.created_by.set_password(PASSWORD)
    crowd.created_by.save()
    page.goto(address + reverse("annotation:people", args=[crowd.slug]))
    log_in(keys, crowd.created_by.username)
    keys.follow(named("link", "Invitations"))
    keys.choose(page.get_by_label("Role"), Role.ENGINEER.label)
    keys.type(page.get_by_label("People at most"), "3")
    keys.type(page.get_by_label("Note"), "for Eve")
    keys.follow(named("button", "Create"))
    made = Invitation.objects.get()
    assert (made.role, made.maximum_uses) == (Role.ENGINEER, 3)
    expect(page.locator("code.secret")).to_contain_text("/join/", timeout=30_000)
    keys.follow(named("button", "Revoke for Eve"), key="Space")
    expect(page.get_by_text("Nothing yet.")).to_be_visible(timeout=30_000)
    keys.follow(named("link", "Back"))
    keys.follow(named("link", "Crowd links"))
    keys.choose(page.get_by_label("Platform"), Platform.MECHANICAL_TURK.label)
    keys.type(page.get_by_label("Study id or HIT id"), "3ABC")
    keys.type(page.get_by_label("Answers until the completion code is shown"), "7")
    keys.follow(named("button", "Create"))
    link = crowd.crowd_links.get()
    assert (link.platform, link.study, link.answers_wanted) == (Platform.MECHANICAL_TURK, "3ABC", 7)
    expect(page.locator("code.secret")).to_contain_text("workerId=${workerId}", timeout=30_000)
    expect(page.get_by_text(link.completion_code)).to_be_visible(timeout=30_000)
    keys.follow(page.get_by_role("button", name="Revoke"))
    expect(page.get_by_text("Nothing yet.")).to_be_visible(timeout=30_000)


def test_a_forgotten_password_is_replaced(page, address, ann, keys, named):
    page.goto(address + reverse("login"))
    keys.follow(named("link", "Forgot the password?"))
    keys.type(page.get_by_label("Email"), "ann@example.org")
    keys.submit()
    page.goto(link_in(mail.outbox[0]))
    for name in ("password1", "password2"):
        keys.type(page.locator(f"[name={name}]"), "another long one")
    keys.submit()
    page.goto(address + reverse("login"))
    log_in(keys, "ann", "another long one")
    assert page.url == address + reverse("annotation:projects")


def test_a_code_and_a_passkey_are_set_up_and_let_in(page, address, ann, keys, named, settings):
    # A busy machine may take longer to type a code than it is valid.
    settings.MFA_TOTP_TOLERANCE = 4
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    page.goto(address + reverse("login"))
    log_in(keys, "ann")
    to_second_factors(keys)
    keys.follow(named("link", "Activate"))
    if "reauthenticate" in page.url:
        keys.type(page.get_by_label("Password"), PASSWORD)
        keys.submit()
    secret = page.get_by_label("Authenticator secret").input_value()

    def code() -> str:
        cache.clear()
        now = list(yield_hotp_counters_from_time())
        return format_hotp_value(hotp_value(secret, now[len(now) // 2]))

    keys.type(page.get_by_label("Authenticator code"), code())
    keys.submit()
    assert Authenticator.objects.filter(user=ann, type="totp").exists()
    to_second_factors(keys)
    keys.follow(named("link", "Add"))
    keys.type(page.get_by_label("Name"), "laptop")
    keys.tick(page.get_by_label("Passwordless"))
    keys.follow(named("button", "Add"))
    assert Authenticator.objects.filter(user=ann, type="webauthn").exists()
    log_out(keys)
    log_in(keys, "ann")
    keys.type(page.get_by_label("Code"), code())
    keys.submit()
    assert page.url == address + reverse("annotation:projects")
    log_out(keys)
    keys.follow(named("button", "Use a passkey"))
    assert page.url == address + reverse("annotation:projects")


def test_a_crowd_link_leads_to_the_completion_code(page, address, crowd, keys, named):
    candidates = make_candidates(crowd, ["play jazz", "rain tomorrow", "next train"])
    queue.open_queries(project=crowd, round_number=1, query_ids=[candidate.pk for candidate in candidates])
    link, token = crowd_links.create_link(
        project=crowd,
        platform="prolific",
        study="",
        answers_wanted=2,
        maximum_participants=1,
        lifetime=DAY,
        owner=crowd.created_by,
    )
    start = reverse("annotation:crowd_start", args=[token])
    page.goto(address + start + "?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=t")
    keys.follow(named("button", "Begin"))
    keys.reach(page.locator(".choice", has_text="music"))
    keys.page.keyboard.press("Space")
    expect(page.locator("#announcement")).to_have_text("Saved. Next question.", timeout=30_000)
    expect(page.locator("#question")).to_be_focused(timeout=30_000)
    keys.reach(page.locator(".choice", has_text="other"))
    # Within this time after a new question a press is taken for a slip of the hand.
    page.wait_for_timeout(400)
    keys.submit()
    expect(page.get_by_text(link.completion_code, exact=True)).to_be_visible(timeout=30_000)
    keys.reach(named("link", "Finish on Prolific"))
    assert sorted(Label.objects.values_list("choice", flat=True)) == [1, 2]
    assert CrowdParticipant.objects.get().completed_at is not None
