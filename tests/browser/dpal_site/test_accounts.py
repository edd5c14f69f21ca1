from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from django.urls import reverse

from annotation.models import Role
from annotation.people.services import crowd_links, invitations
from tests import axe
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("fresh_limits")]
SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 320, "height": 640}}
PASSWORD = "correct horse battery"


@pytest.fixture
def manager():
    return make_user("manager", password=PASSWORD, email="manager@example.org")


@pytest.fixture
def crowd(manager):
    project = make_project(owner=manager, oracle="crowd", name="Voice queries")
    add_members(project, manager, role=Role.MANAGER)
    return project


@pytest.fixture
def address(live_server):
    # A passkey is bound to a name, and an address in numbers is none.
    return live_server.url.replace("127.0.0.1", "localhost")


def problems(page):
    violations = axe.violations(page)
    found = [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in violations]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*found, f"{wide} px too wide"] if wide else found


def log_in(page, address, user):
    client = browser_of(user)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": address}])


def confirm_password(page):
    if "reauthenticate" in page.url:
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
        page.wait_for_url(lambda url: "reauthenticate" not in url)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_pages_for_visitors_are_clean(page, address, crowd, manager, size, scheme, settings):
    settings.SIGNUP = "open"
    _, secret = invitations.create_invitation(
        project=crowd, role=Role.ANNOTATOR, maximum_uses=1, lifetime=timedelta(days=1), owner=manager
    )
    _, token = crowd_links.create_link(
        project=crowd,
        platform="prolific",
        study="",
        answers_wanted=1,
        maximum_participants=1,
        lifetime=timedelta(days=1),
        owner=manager,
    )
    start = reverse("annotation:crowd_start", args=[token])
    Client().post(reverse("account_reset_password"), {"email": "manager@example.org"})
    reset = mail.outbox[0].body.split("http://testserver")[1].split()[0]
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = {}
    for path in (
        reverse("login"),
        reverse("account_signup"),
        reverse("account_reset_password"),
        reverse("account_reset_password_done"),
        reset,
        reverse("account_reset_password_from_key", kwargs={"uidb36": "1", "key": "wrong"}),
        reverse("account_reset_password_from_key_done"),
        reverse("account_email_verification_sent"),
        reverse("account_inactive"),
        reverse("account_confirm_email", args=["wrong"]),
        reverse("socialaccount_login_cancelled"),
        reverse("socialaccount_login_error"),
        reverse("preferences"),
        reverse("annotation:join", args=[secret]),
        start,
        start + "?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=t",
        reverse("annotation:join", args=["wrong"]),
    ):
        page.goto(address + path)
        if wrong := problems(page):
            found[path] = wrong
    settings.SIGNUP = "invited"
    page.context.clear_cookies()
    page.goto(address + reverse("account_signup"))
    assert (found, problems(page)) == ({}, [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_pages_for_members_are_clean(page, address, crowd, manager, size, scheme, settings):
    _, secret = invitations.create_invitation(
        project=crowd, role=Role.ANNOTATOR, maximum_uses=1, lifetime=timedelta(days=1), owner=manager, note="for Ann"
    )
    crowd_links.create_link(
        project=crowd,
        platform="prolific",
        study="",
        answers_wanted=1,
        maximum_participants=1,
        lifetime=timedelta(days=1),
        owner=manager,
    )
    log_in(page, address, manager)
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = {}
    for path in (
        reverse("account_reauthenticate"),
        reverse("account_email"),
        reverse("account_change_password"),
        reverse("account_logout"),
        reverse("mfa_index"),
        reverse("mfa_activate_totp"),
        reverse("mfa_add_webauthn"),
        reverse("mfa_list_webauthn"),
        reverse("usersessions_list"),
        reverse("socialaccount_connections"),
        reverse("preferences"),
        reverse("annotation:invitations", args=[crowd.slug]),
        reverse("annotation:crowd_links", args=[crowd.slug]),
        reverse("annotation:join", args=[secret]),
    ):
        page.goto(address + path)
        if path != reverse("account_reauthenticate"):
            confirm_password(page)
        if wrong := problems(page):
            found[path] = wrong
    settings.SECOND_FACTOR = frozenset({"all"})
    page.goto(address + reverse("annotation:projects"))
    assert reverse("second_factor") in page.url
    assert (found, problems(page)) == ({}, [])


def test_a_passkey_is_added_and_logs_in(page, address, manager):
    devices = page.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    devices.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    log_in(page, address, manager)
    page.goto(address + reverse("mfa_add_webauthn"))
    confirm_password(page)
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url(lambda url: "add" not in url)
    assert problems(page) == []
    page.goto(address + reverse("mfa_list_webauthn"))
    assert problems(page) == []
    page.goto(address + reverse("mfa_view_recovery_codes"))
    confirm_password(page)
    assert problems(page) == []
    page.context.clear_cookies()
    page.goto(address + reverse("login"))
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(address + "/")
    page.goto(address + reverse("mfa_index"))
    assert "You have added 1 security key" in page.content()


def test_a_page_by_tls_keeps_the_zone_for_its_host_alone(browser):
    script = (settings.BASE_DIR / "dpal_site" / "static" / "clock.js").read_text()
    with browser.new_context(timezone_id="Asia/Tokyo") as context:
        page = context.new_page()
        page.route("**/*", lambda route: route.fulfill(body=f"<script>{script}</script>", content_type="text/html"))
        for address in ("https://label.example.org/", "https://label.example.org/projects/"):
            page.goto(address)
        (cookie,) = context.cookies()
        assert (cookie["name"], cookie["value"], cookie["secure"]) == ("__Host-timezone", "Asia/Tokyo", True)


def test_the_page_tells_the_site_the_time_zone(browser, live_server):
    with browser.new_context(timezone_id="Asia/Tokyo") as context:
        page = context.new_page()
        page.goto(live_server.url + reverse("login"))
        assert {"timezone": "Asia/Tokyo"}.items() <= {c["name"]: c["value"] for c in context.cookies()}.items()
        page.goto(live_server.url + reverse("preferences"))
        assert page.locator("[name=zone]").input_value() == "Asia/Tokyo"
