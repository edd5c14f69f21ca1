"""Pages of the sign-in library and of Django's administration against every kind of person, row by row.

Letters are those of `tests/permission_rows.py`. None of these pages is about a project, so roles make no difference
here, and the rows say so; staff without any right over the administration's models come last.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter, UUIDConverter

from annotation.models import Project, Role
from annotation.work.services.tokens import Scope
from tests import learning
from tests.clients import browser_of
from tests.factories import add_members, make_project, make_user
from tests.permission_rows import BODIES, ELSEWHERE, OPEN, OPEN_ANSWERS, PAGES, ROUTES, TWICE
from tests.permission_scene import PEOPLE, Scene, api_routes, as_letters, as_row, letter, named_patterns, outcome
from tests.site_walk import send

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = (*PEOPLE, "staff")
OWN_ACCOUNT = ("account_", "mfa_", "socialaccount_", "openid_connect_", "usersessions_")
# Whoever comes sees a form, a sentence, or is sent to one; nobody is told about somebody else.
EVERYBODY, LOGGED_IN, NOBODY = "+++++++++", "L++++++++", "---------"
# Nothing of it is there for the person: no second factor to take away, nothing to sign in with again.
NOTHING_YET, NO_WAY = "L--------", "Lxxxxxxxx"
TO_LOGIN = "LLLLLLLLL"
ACCOUNT = {
    "account_login": EVERYBODY,
    # The page asks whether one means it, and then leads to the login; visitors are there already.
    "account_logout": "L +L +L +L +L +L +L +L +L",
    "account_inactive": EVERYBODY,
    "account_signup": EVERYBODY,
    "account_reauthenticate": NO_WAY,
    "account_email": LOGGED_IN,
    "account_email_verification_sent": EVERYBODY,
    "account_change_password": LOGGED_IN,
    "account_set_password": LOGGED_IN,
    "account_reset_password": EVERYBODY,
    "account_confirm_login_code": LOGGED_IN,
    # A wrong key is told to whoever looks, and opens nothing.
    "account_confirm_email": "+- +- +- +- +- +- +- +- +-",
    "account_reset_password_from_key_done": EVERYBODY,
    "account_reset_password_from_key": EVERYBODY,
    "account_reset_password_done": EVERYBODY,
    "mfa_index": LOGGED_IN,
    "mfa_authenticate": LOGGED_IN,
    "mfa_reauthenticate": NO_WAY,
    "mfa_activate_totp": LOGGED_IN,
    "mfa_deactivate_totp": NOTHING_YET,
    "mfa_view_recovery_codes": NOTHING_YET,
    "mfa_generate_recovery_codes": LOGGED_IN,
    "mfa_download_recovery_codes": NOTHING_YET,
    "mfa_list_webauthn": LOGGED_IN,
    "mfa_add_webauthn": LOGGED_IN,
    "mfa_reauthenticate_webauthn": NO_WAY,
    # The row named is somebody else's or none.
    "mfa_remove_webauthn": NOTHING_YET,
    "mfa_edit_webauthn": NOTHING_YET,
    "mfa_login_webauthn": LOGGED_IN,
    "socialaccount_login_cancelled": EVERYBODY,
    "socialaccount_login_error": TO_LOGIN,
    "socialaccount_signup": TO_LOGIN,
    "socialaccount_connections": LOGGED_IN,
    # No issuer is configured.
    "openid_connect_login": NOBODY,
    "openid_connect_callback": NOBODY,
    "usersessions_list": LOGGED_IN,
}
# Pages without a name, by their address.
NAMELESS = {
    "/accounts/social/login/cancelled/": EVERYBODY,
    "/accounts/social/login/error/": EVERYBODY,
    "/accounts/social/signup/": EVERYBODY,
    "/accounts/social/connections/": EVERYBODY,
}
ADMINISTRATION = {
    "admin:index": "LLLLL+LL+",
    # Who is logged in without a right to it is refused; staff are led on.
    "admin:login": "L x x x x -+ x x -+",
    "admin:logout": "-----L--L",
    "admin:password_change": "LLLLL+LL+",
    "admin:password_change_done": "LLLLL+LL+",
    "admin:autocomplete": "LLLLLxLLx",
    "admin:jsi18n": "LLLLL+LL+",
    "admin:view_on_site": "LLLLL-LL-",
    "admin:app_list": "LLLLL+LL-",
    "admin:auth_user_password_change": "LLLLL+LLx",
}
# What an administrator may do with a model: list it, add to it, change, delete and look up the history of a row that is
# not there (those that are: `test_admin.py`); looking and sending differ where a row may be seen and not changed.
READ, GIVE, ALL = ("+", "x", "-x", "x", "-"), ("+", "+", "-x", "-", "-"), ("+", "+", "-", "-", "-")
MODELS = (
    ("learner", READ, "round trainingrun modelrelease evaluation featurematrix"),
    (
        "annotation",
        READ,
        "project dataset gaterun job apitoken label action projectchange forgetting deletion retention",
    ),
    ("annotation", GIVE, "membership"),
    ("privacy", READ, "budgetaccount ledgerentry"),
    ("account", ALL, "emailaddress"),
    ("socialaccount", ALL, "socialapp socialtoken socialaccount"),
    ("mfa", ALL, "authenticator"),
    ("usersessions", ALL, "usersession"),
    ("auth", ALL, "group user"),
)
# Who tries every page of the administration in every run.
ALWAYS = ("anonymous", "administrator", "staff")
SUFFIXES = ("changelist", "add", "change", "delete", "history")


@pytest.fixture
def clients() -> dict[str, Client]:
    project = make_project()
    people: dict[str, User | None] = {"anonymous": None}
    for kind in KINDS[1:]:
        rights = {"is_staff": True, "is_superuser": True} if kind == "administrator" else {"is_staff": kind == "staff"}
        people[kind] = make_user(kind, **rights)
    for role in Role.values:
        add_members(project, people[role], role=role)
    found = {}
    for kind, person in people.items():
        found[kind] = Client(raise_request_exception=False)
        if person is not None:
            found[kind].force_login(person)
    return found


def account_address(name: str, pattern: URLPattern, pk: int) -> str:
    """Return an address of the sign-in library that names somebody else's row, or nothing there is."""
    given = {"key": "0", "uidb36": "0", "provider_id": "none", "pk": pk}
    for kwargs in ({argument: given[argument] for argument in pattern.pattern.converters if argument in given}, given):
        for wanted in (kwargs, {"pk": pk}, {"key": "0"}, {"uidb36": "0", "key": "0"}, {"provider_id": "none"}):
            with contextlib.suppress(NoReverseMatch):
                return reverse(name, kwargs=wanted)
    raise AssertionError(name)


def nameless(patterns: list[Any], prefix: str = "/") -> list[str]:
    found = []
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                found += nameless(pattern.url_patterns, prefix + str(pattern.pattern))
        elif not pattern.name:
            found.append(prefix + str(pattern.pattern))
    return found


def row_of(clients: dict[str, Client], address: str) -> str:
    return as_row([letter(clients[kind], address) for kind in KINDS])


@pytest.mark.slow
def test_the_sign_in_library_lets_in_whom_its_rows_say(clients) -> None:
    other = make_user("somebody-else", email="else@example.org")
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name.startswith(OWN_ACCOUNT):
            got[name] = row_of(clients, account_address(name, pattern, other.pk))
    assert [(name, row) for name, row in got.items() if ACCOUNT.get(name) != row] == []
    assert got.keys() == ACCOUNT.keys()
    bare = {address: row_of(clients, address) for address in nameless(get_resolver().url_patterns)}
    assert bare == NAMELESS


def test_no_page_of_the_sign_in_library_shows_somebody_else() -> None:
    other = make_user("somebody-else", email="else@example.org")
    own = browser_of(make_user("person"), raise_request_exception=False)
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if not name.startswith(OWN_ACCOUNT):
            continue
        for client in (Client(raise_request_exception=False), own):
            answer = client.get(account_address(name, pattern, other.pk))
            assert answer.status_code < 500, name
            assert b"somebody-else" not in answer.content, name
            assert b"else@example.org" not in answer.content, name


def model_rows() -> dict[str, str]:
    """Return the rows of all pages about models; staff without a right are refused, or told there is no such row."""
    found = {}
    for app, rights, names in MODELS:
        for name in names.split():
            for suffix, right in zip(SUFFIXES, rights, strict=True):
                others = {"history": "-"}.get(suffix, "x")
                letters = [*["L"] * 5, right, "L", "L", others]
                page = f"admin:{app}_{name}_{suffix}"
                found[page] = "".join(letters) if len(right) == 1 else " ".join(letters)
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("in_turn", [True, False])
def test_the_administration_lets_in_whom_its_rows_say(clients, in_turn) -> None:
    """Of those who may come nowhere one in turn tries each page, or all of them every page."""
    somebody = str(make_user().pk)
    values = {"content_type_id": "0", "object_id": "0", "id": somebody, "app_label": "annotation"}
    others = [kind for kind in KINDS if kind not in ALWAYS]
    expected, seen, wrong = ADMINISTRATION | model_rows(), set(), []
    for name, pattern in named_patterns(get_resolver().url_patterns):
        # Those without a name lead on to the page of a row, or say that nothing is there.
        if not name.startswith("admin:") or name == "admin:":
            continue
        wanted = [*pattern.pattern.converters] or (["app_label"] if name == "admin:app_list" else [])
        address = reverse(name, kwargs={key: values[key] for key in wanted})
        trying = {*ALWAYS, others[len(seen) % len(others)]} if in_turn else set(KINDS)
        seen.add(name)
        for kind, known in zip(KINDS, as_letters(expected.get(name, "?" * len(KINDS))), strict=True):
            if kind in trying and (got := letter(clients[kind], address)) != known:
                wrong.append((name, kind, got))
    assert wrong == []
    assert seen == expected.keys()


def test_addresses_without_a_name_in_the_administration_say_nothing(clients) -> None:
    for address in ("/admin/annotation/label/1/", "/admin/no/such/page/", "/admin/annotation"):
        for kind in KINDS:
            answer = clients[kind].get(address, follow=True)
            assert answer.status_code in (200, 403, 404), (address, kind)
            if kind != "administrator":
                assert not answer.context or "original" not in answer.context, (address, kind)


def test_every_address_has_a_row() -> None:
    names = {name for name, _ in named_patterns(get_resolver().url_patterns)}
    elsewhere = {name for name in names if name == "" or name.startswith(ELSEWHERE)}
    routes = {f"api:{name}" for name in ROUTES}
    assert names - elsewhere == set(PAGES) | OPEN | routes
    # One name, one address: a second one under the name of a page with a row would hide behind it.
    told_apart = [name for name, _ in named_patterns(get_resolver().url_patterns) if name not in elsewhere]
    assert len(told_apart) == len(names - elsewhere) + len(TWICE)


def test_addresses_that_need_no_login_give_nothing_away() -> None:
    """Whoever comes without the secret in the address, and whoever has no part in a project, gets one and the same."""
    project: Project = learning.open_crowd(make_user("owner"))
    outsider = make_user("outsider")
    values = {"secret": "s" * 43, "token": "t" * 43, "slug": project.slug, "revision": "main", "name": "weights.json"}
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in OPEN:
            continue
        address = reverse(name, kwargs={argument: values[argument] for argument in pattern.pattern.converters})
        for person in (None, outsider):
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(person)
            answer = client.get(address)
            body = b"" if answer.streaming else answer.content
            assert project.name.encode() not in body, name
            if name == "readyz":  # depends on workers and disk
                assert answer.status_code in (200, 503)
                continue
            got.setdefault(name, []).append(answer.status_code)
    assert got == OPEN_ANSWERS


# Whoever may come here may name any row of the site: groups belong to no project, and work is looked at as a whole.
SITE_WIDE = {
    "api:send_work_again": "whoever runs the site sees all work",
    "api:stop_work": "whoever runs the site sees all work",
    "operations:send_again": "whoever runs the site sees all work",
    "operations:cancel": "whoever runs the site sees all work",
}
# Not ids of rows: every project has a version 1.
NUMBERS = {"version"}


def exchanged(here: dict[str, Any], there: dict[str, Any]) -> list[dict[str, Any]]:
    foreign = [name for name in here if here[name] != there[name]]
    return [here | {name: there[name]} for name in foreign] + ([here | there] if foreign else [])


@pytest.fixture
def both(remembered: Callable[..., tuple[Scene, Scene]]) -> tuple[Scene, Scene]:
    return remembered("two scenes", lambda: (Scene(), Scene("-there")))


def test_no_page_takes_an_id_of_another_project(both: tuple[Scene, Scene]) -> None:
    here, there = both
    clients = {person: here.client(person) for person in PEOPLE}
    tried, let_in, same = 0, [], set()
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PAGES or name in SITE_WIDE:
            continue
        for person, known in zip(PEOPLE, as_letters(PAGES[name]), strict=True):
            if "+" not in known:
                continue
            own, other = here.values(name, pattern, person), there.values(name, pattern, person)
            same |= {
                (name, part)
                for part, kind in pattern.pattern.converters.items()
                if isinstance(kind, IntConverter | UUIDConverter) and own[part] == other[part]
            }
            for values in exchanged(own, other):
                tried += 1
                got = letter(clients[person], reverse(name, kwargs=values))
                if got != "-":
                    let_in.append((name, person, sorted(part for part in values if values[part] != own[part]), got))
    assert let_in == []
    assert {part for _name, part in same} <= NUMBERS
    assert tried > len(PAGES)


def test_no_route_of_the_api_takes_an_id_of_another_project(both: tuple[Scene, Scene]) -> None:
    here, there = both
    patterns = dict(named_patterns(get_resolver().url_patterns))
    clients = {person: here.with_token(person, list(Scope)) for person in PEOPLE}
    tried, let_in = 0, []
    for name, method in api_routes():
        pattern = patterns[f"api:{name}"]
        if f"api:{name}" in SITE_WIDE:
            continue
        for person, known in zip(PEOPLE, ROUTES[name][0], strict=True):
            if known != "+":
                continue
            own, other = here.values(f"api:{name}", pattern, person), there.values(f"api:{name}", pattern, person)
            for values in exchanged(own, other):
                tried += 1
                to = reverse(f"api:{name}", kwargs=values)
                answer = send(clients[person], name, method, to)
                if outcome(answer) != "-":
                    let_in.append((name, person, answer.status_code))
    assert let_in == []
    assert tried > len(ROUTES)
    assert BODIES.keys() <= ROUTES.keys()
