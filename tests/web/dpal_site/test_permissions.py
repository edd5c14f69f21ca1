"""Who may do what: every address and API route of the site against every kind of person, row by row.

A row says what anonymous visitors, people outside the project, its annotators, its engineers, its managers, and an
administrator who is no member get: `L` asked to log in, `-` it does not exist, `x` refused, `+` let in. A route
without a row, or a row without a route, fails.
"""

import contextlib
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from annotation.joining_models import CrowdLink
from annotation.models import Assignment, DatasetRole, Membership, Project, Query, Role
from annotation.services import drafts, groups, invitations, projects, queue, tokens
from annotation.services.tokens import Scope
from dpal_site.api import api
from learner.webhook_models import Webhook, WebhookDelivery
from tests import learning
from tests.factories import make_records, make_user, open_records

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = ("anonymous", "outsider", "annotator", "engineer", "manager", "administrator")
MEMBERS, MANAGERS, INSIDE, ANNOTATORS = "L-+++-", "L---+-", "L--++-", "L-+---"
# The same people, where a member in another role is told so.
ONLY_ANNOTATORS, ONLY_MANAGERS = "L-+xx-", "L--x+-"
PAGES = {
    "annotation:projects": "L+++++",
    "annotation:choose_preset": "Lxxxx+",
    "annotation:new_project": "Lxxxx+",
    "annotation:wizard": "Lxxxx+",
    "annotation:open_beside": "Lxxxx-",
    "annotation:project": MEMBERS,
    "annotation:set_state": MANAGERS,
    "annotation:settings": MANAGERS,
    "annotation:log": MANAGERS,
    "annotation:log_csv": MANAGERS,
    "annotation:retention": MANAGERS,
    "annotation:configuration": MANAGERS,
    "annotation:kind": MANAGERS,
    "annotation:people": MANAGERS,
    "annotation:remove_member": MANAGERS,
    "annotation:invitations": MANAGERS,
    "annotation:revoke_invitation": MANAGERS,
    "annotation:give_group_role": MANAGERS,
    "annotation:take_group_role": MANAGERS,
    "annotation:groups": "Lxxxx+",
    "annotation:group": "Lxxxx+",
    "annotation:rename_group": "Lxxxx+",
    "annotation:delete_group": "Lxxxx+",
    "annotation:remove_from_group": "Lxxxx+",
    "annotation:group_invitations": "Lxxxx+",
    "annotation:revoke_group_invitation": "Lxxxx+",
    "annotation:crowd_links": MANAGERS,
    "annotation:revoke_crowd_link": MANAGERS,
    "annotation:own_statistics": ANNOTATORS,
    "annotation:quality": MANAGERS,
    "annotation:add_checks": MANAGERS,
    "annotation:checks": MANAGERS,
    # Nothing is a check in the project.
    "annotation:check_image": "L-----",
    "annotation:retire_check": "L-----",
    "annotation:compare_answers": MANAGERS,
    "annotation:set_pause": MANAGERS,
    "annotation:review": MANAGERS,
    "annotation:settle": MANAGERS,
    "annotation:review_image": "L-----",
    "annotation:payments": MANAGERS,
    "annotation:opinions": MANAGERS,
    "annotation:data": MANAGERS,
    "annotation:uploads": MANAGERS,
    # The look is the manager's own.
    "annotation:preview": MANAGERS,
    "annotation:dataset": MANAGERS,
    "annotation:bad_rows": MANAGERS,
    "annotation:start_gate": MANAGERS,
    "annotation:download_labels": MANAGERS,
    "annotation:gate": MANAGERS,
    "annotation:survey": MANAGERS,
    "annotation:label_budget": MANAGERS,
    "annotation:budget": INSIDE,
    "annotation:statement": INSIDE,
    "annotation:statement_csv": INSIDE,
    "annotation:statement_json": INSIDE,
    "annotation:change_limit": MANAGERS,
    "annotation:limit_requests": MANAGERS,
    "annotation:decide_limit": MANAGERS,
    "annotation:second_manager": MANAGERS,
    "annotation:labelling": MANAGERS,
    "annotation:guidelines": MANAGERS,
    "annotation:reported": MANAGERS,
    "annotation:decide": MANAGERS,
    "annotation:resolve": MANAGERS,
    "annotation:tokens": "L+++++",
    # The token belongs to the manager.
    "annotation:revoke_token": MANAGERS,
    "annotation:label": ONLY_ANNOTATORS,
    "annotation:undo": ONLY_ANNOTATORS,
    "annotation:submit": ANNOTATORS,
    "annotation:skip": ANNOTATORS,
    "annotation:read_guidelines": ONLY_ANNOTATORS,
    "annotation:why": ONLY_ANNOTATORS,
    "annotation:flag": ANNOTATORS,
    "annotation:comment": ANNOTATORS,
    # Texts have no image, whoever asks.
    "annotation:question_image": "L-----",
    "learner:overview": INSIDE,
    "learner:dashboard": INSIDE,
    "learner:dashboard_plot": INSIDE,
    "learner:dashboard_csv": INSIDE,
    "learner:work_list": MANAGERS,
    "learner:compare_projects": MANAGERS,
    "learner:cancel_work": MANAGERS,
    "learner:retry_work": MANAGERS,
    "learner:standing": MANAGERS,
    # No block is open in the project, which a manager is told like this.
    "learner:close_block": "L--x--",
    "learner:ranked_pool": MANAGERS,
    "learner:closing": MANAGERS,
    "learner:set_archived": MANAGERS,
    "learner:delete_project": MANAGERS,
    "learner:forget": MANAGERS,
    "learner:preview_forget": MANAGERS,
    "learner:forget_now": MANAGERS,
    "learner:releases": INSIDE,
    "learner:draft_plan": "Lxxxx+",
    "learner:draft_plan_plot": "Lxxxx-",
    "learner:plan": MANAGERS,
    # Nobody has simulated under this name.
    "learner:plan_plot": "L-----",
    "learner:release": INSIDE,
    "learner:check_again": ONLY_MANAGERS,
    "learner:accuracy_plot": INSIDE,
    "learner:measure_plot": INSIDE,
    "learner:retire": ONLY_MANAGERS,
    "learner:release_file": INSIDE,
    "learner:webhooks": MANAGERS,
    "learner:remove_webhook": MANAGERS,
    "learner:send_webhook_again": MANAGERS,
    "preferences": "++++++",
    "operations:work": "Lxxxx+",
    "operations:send_again": "Lxxxx+",
    "operations:cancel": "Lxxxx+",
}
# Open to whoever holds the address or knows a secret; each has tests of its own.
OPEN = {
    "first_account",
    "annotation:join",
    "annotation:crowd_start",
    "annotation:crowd_done",
    "healthz",
    "readyz",
    "metrics",
    "login",
    "logout",
    "api:openapi-json",
    "api:openapi-view",
    "api:api-root",
}
# The sign-in library's pages are about the caller's own account and nothing else.
OWN_ACCOUNT = ("account_", "mfa_", "socialaccount_", "openid_connect_", "usersessions_")
# Of those, what a visitor and an outsider get without the secret in the address.
OPEN_ANSWERS = {
    # Somebody has an account by then.
    "first_account": [404, 404],
    "healthz": [200, 200],
    "metrics": [200, 200],
    "login": [200, 302],
    "logout": [405, 405],
    "api:openapi-json": [200, 200],
    "api:openapi-view": [200, 200],
    "api:api-root": [404, 404],
    "annotation:crowd_done": [302, 404],
    "annotation:join": [410, 410],
    "annotation:crowd_start": [410, 410],
}
# The sign-in library's pages that come before a login.
OPEN_BEFORE_LOGIN = {
    "account_confirm_email",
    "account_email_verification_sent",
    "account_inactive",
    "account_login",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
    "account_signup",
    "socialaccount_login_cancelled",
}
# What the roles get with a token of every scope, and the scope without which everybody is refused.
ROUTES: dict[str, tuple[str, Scope]] = {
    "list_projects": ("L+++++", Scope.PROJECTS_READ),
    "get_project": (MEMBERS, Scope.PROJECTS_READ),
    "upload_dataset": (MANAGERS, Scope.DATASETS_WRITE),
    "list_datasets": (MANAGERS, Scope.DATASETS_WRITE),
    "post_records": (MANAGERS, Scope.DATASETS_WRITE),
    "get_job": (MANAGERS, Scope.DATASETS_WRITE),
    "claim_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "label_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "skip_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "export_labels": (MANAGERS, Scope.LABELS_READ),
    "list_accounts": (INSIDE, Scope.LEDGER_READ),
    "list_entries": (INSIDE, Scope.LEDGER_READ),
    "get_statement": (INSIDE, Scope.LEDGER_READ),
    "list_models": (INSIDE, Scope.MODELS_READ),
    "get_model": (INSIDE, Scope.MODELS_READ),
    "get_file": (INSIDE, Scope.MODELS_READ),
    "predict": (INSIDE, Scope.MODELS_READ),
    "list_rounds": (INSIDE, Scope.MODELS_READ),
    "preview_forgetting_of": (MANAGERS, Scope.DATASETS_WRITE),
    "forget_contributor": (MANAGERS, Scope.DATASETS_WRITE),
    "list_forgettings": (MANAGERS, Scope.DATASETS_WRITE),
}
BODIES: dict[str, Any] = {
    "post_records": {"records": [{"text": "hello"}]},
    "label_assignment": {"choice": 0},
    "skip_assignment": {},
    "predict": {"texts": ["hello"]},
    "preview_forgetting_of": {"contributor": "nobody"},
    "forget_contributor": {"contributor": "nobody"},
}
# Routes that take a file instead.
FILES = {"upload_dataset": ("more.csv", b"text\nhello\n")}


def named_patterns(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Yield every address the site answers, with its full name."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from named_patterns(pattern.url_patterns, inner)
        else:
            yield f"{prefix}{pattern.name or ''}", pattern


def api_routes() -> Iterator[tuple[str, str]]:
    """Yield the name and the method of every route of the API."""
    for _prefix, router in api._routers:
        for view in router.path_operations.values():
            for operation in view.operations:
                for method in operation.methods:
                    yield operation.view_func.__name__, method


class Scene:
    """A project in which everything an address can name exists, and one person of each kind."""

    def __init__(self) -> None:
        self.people = {name: make_user(name) for name in PEOPLE[1:5]}
        self.people["administrator"] = make_user("administrator", is_staff=True, is_superuser=True)
        manager, annotator = self.people["manager"], self.people["annotator"]
        self.project: Project = learning.open_trusted(manager)
        learning.fill_trusted(self.project)
        release = learning.run_to_release(self.project, make_user(), version=1)
        for name in ("annotator", "engineer"):
            projects.add_member(project=self.project, user=self.people[name], role=Role(name))
        open_records(self.project, 3, round_number=9)
        self.lease: Assignment = queue.claim_next(project=self.project, user=annotator)
        self.lease_membership = Membership.objects.get(project=self.project, user=annotator)
        disputed = Query.objects.filter(project=self.project).exclude(pk=self.lease.query_id).latest("pk")
        Query.objects.filter(pk=disputed.pk).update(state="disputed", open_slots=0)
        report = self.project.reports.create(query=disputed, annotator=annotator, kind="comment", comment="see here")
        invitation, _secret = invitations.create_invitation(
            project=self.project, owner=manager, role=Role.ANNOTATOR, maximum_uses=1, lifetime=timedelta(days=1)
        )
        crowd = learning.open_crowd(manager)
        for name in ("annotator", "engineer"):
            projects.add_member(project=crowd, user=self.people[name], role=Role(name))
        link: CrowdLink = crowd.crowd_links.create(
            token="t" * 43,
            platform="prolific",
            answers_wanted=1,
            completion_code="CODE",
            maximum_participants=1,
            expires_at=invitation.expires_at,
            created_by=manager,
        )
        token, _secret = tokens.create_token(
            user=manager, name="own", scopes=[Scope.PROJECTS_READ], lifetime=timedelta(days=1)
        )
        draft = drafts.keep_draft(
            project=self.project,
            file=SimpleUploadedFile("more.csv", b"text\nhello\n"),
            name="more.csv",
            role="pool",
            bad_rows="keep_good",
            owner=manager,
        )
        pool = self.project.datasets.filter(role=DatasetRole.POOL).earliest("pk")
        evaluated = self.project.datasets.filter(role=DatasetRole.PUBLIC_TEST).first() or pool
        webhook = Webhook.objects.create(
            project=self.project, url="https://hooks.example/", events=["round"], salt=b"s"
        )
        delivery = WebhookDelivery.objects.create(webhook=webhook, event="round", subject="round 1", body="{}")
        wanted = self.project.limit_requests.create(
            kind="alone", reason="she leaves", requested_by=manager, expires_at=invitation.expires_at
        )
        group = groups.create_group(name="Night shift", owner=self.people["administrator"])
        groups.add_people(group=group, people=[make_user()], actor="administrator")
        given = groups.give_role(group=group, project=self.project, role=Role.ANNOTATOR)
        into_group, _secret = invitations.create_invitation(
            group=group, owner=self.people["administrator"], maximum_uses=1, lifetime=timedelta(days=1)
        )
        self.arguments: dict[str, Any] = {
            "group_id": group.pk,
            "given_id": given.pk,
            "place_id": group.members.get().pk,
            "webhook_id": webhook.pk,
            "delivery_id": delivery.pk,
            "slug": self.project.slug,
            "preset": "pool-experts",
            "step": "task",
            "request_id": wanted.pk,
            "fingerprint": "0" * 64,
            "membership_id": self.lease_membership.pk,
            "invitation_id": invitation.pk,
            "link_id": link.pk,
            "check_id": 0,
            "query_id": disputed.pk,
            "report_id": report.pk,
            "dataset_id": pool.pk,
            "draft_id": draft.pk,
            "account_id": self.project.pool_account_id,
            "token_id": token.pk,
            "assignment_id": self.lease.pk,
            "job_id": pool.job_id,
            "version": release.version,
            "name": "weights.json",
            "format": "csv",
            "kind": "reliability",
            "key": "none",
        }
        crowd_pages = (
            "annotation:crowd_links",
            "annotation:revoke_crowd_link",
            "learner:ranked_pool",
            "annotation:gate",
        )
        (behind_gate,) = make_records(crowd, ["play jazz"])
        self.own: dict[str, dict[str, Any]] = {name: {"slug": crowd.slug} for name in crowd_pages} | {
            "annotation:revoke_group_invitation": {"invitation_id": into_group.pk},
            "operations:send_again": {"kind": "job", "key": str(pool.job_id)},
            "operations:cancel": {"kind": "job", "key": str(pool.job_id)},
            "annotation:survey": {"slug": crowd.slug, "dataset_id": behind_gate.dataset_id},
            "learner:dashboard_plot": {"name": "spending"},
            "learner:dashboard_csv": {"name": "spending"},
            "learner:cancel_work": {"kind": "job", "key": str(pool.job_id)},
            "learner:retry_work": {"kind": "job", "key": str(pool.job_id)},
            "learner:measure_plot": {"dataset_id": evaluated.pk},
        }

    def address(self, name: str, pattern: URLPattern) -> str:
        """Return the address of a pattern about this scene's project."""
        wanted = pattern.pattern.converters
        values = self.arguments | self.own.get(name, {})
        return reverse(name, kwargs={argument: values[argument] for argument in wanted})

    def client(self, person: str) -> Client:
        """Return a browser in which the person is logged in."""
        client = Client(raise_request_exception=False)
        if person != "anonymous":
            client.force_login(self.people[person])
        return client

    def with_token(self, person: str, scopes: list[Scope]) -> Client:
        """Return a program that holds a token of the person's."""
        if person == "anonymous":
            return Client(raise_request_exception=False)
        _, secret = tokens.create_token(
            user=self.people[person], name="test", scopes=scopes, lifetime=timedelta(days=1)
        )
        return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def outcome(response: Any) -> str:
    """Return the letter a response stands for; whatever went on inside counts as let in."""
    status = response.status_code
    if status == 401 or (status == 302 and response["Location"].startswith(resolve_url(settings.LOGIN_URL))):
        return "L"
    if status >= 500:
        return "!"
    return {404: "-", 403: "x"}.get(status, "+")


def undone(send: Any) -> Any:
    """Send a request and take back whatever it did."""
    with transaction.atomic():
        response = send()
        if getattr(response, "streaming", False):
            response.close()
        transaction.set_rollback(True)
    return response


def test_every_page_lets_in_whom_its_row_says() -> None:
    scene = Scene()
    clients = {person: scene.client(person) for person in PEOPLE}
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in PAGES:
            continue
        address = scene.address(name, pattern)

        def letter(client: Client, address: str = address) -> str:
            response = undone(lambda: client.get(address))
            if response.status_code == 405:
                response = undone(lambda: client.post(address))
            return outcome(response)

        got[name] = "".join(letter(clients[person]) for person in PEOPLE)
    assert [f"{name} {row}" for name, row in got.items() if row != PAGES[name]] == []
    assert got.keys() == PAGES.keys()


def test_every_address_has_a_row() -> None:
    names = {name for name, _ in named_patterns(get_resolver().url_patterns)}
    listed = {name for name in names if name in PAGES or name in OPEN}
    elsewhere = {
        name
        for name in names - listed
        if name.startswith(("admin:", *OWN_ACCOUNT)) or name == "" or name.removeprefix("api:") in ROUTES
    }
    assert names - listed - elsewhere == set()
    assert (set(PAGES) | OPEN) - names == set()


def test_every_route_of_the_api_lets_in_whom_its_row_says() -> None:
    scene = Scene()
    routes = dict(api_routes())
    patterns = dict(named_patterns(get_resolver().url_patterns))
    everything = list(Scope)
    whole = {person: scene.with_token(person, everything) for person in PEOPLE}
    got, scoped = {}, {}
    for name, method in routes.items():
        address = scene.address(f"api:{name}", patterns[f"api:{name}"])

        def letter(client: Client, name: str = name, method: str = method, address: str = address) -> str:
            if name in FILES:
                return outcome(undone(lambda: client.post(address, {"file": SimpleUploadedFile(*FILES[name])})))
            return outcome(
                undone(lambda: client.generic(method, address, _body(name), content_type="application/json"))
            )

        needed = ROUTES[name][1]
        got[name] = ("".join(letter(whole[person]) for person in PEOPLE), needed)
        lacking = [scope for scope in everything if scope != needed]
        scoped[name] = {letter(scene.with_token(person, lacking)) for person in PEOPLE[1:]}
    assert got == ROUTES
    assert scoped == {name: {"x"} for name in scoped}


def _body(name: str) -> str:
    return json.dumps(BODIES.get(name, {}))


def test_the_administration_is_for_administrators() -> None:
    people = {"manager": make_user("manager"), "staff": make_user("staff", is_staff=True)}
    administrator = make_user("administrator", is_staff=True, is_superuser=True)
    seen = 0
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if not name.endswith("_changelist"):
            continue
        seen += 1
        address = reverse(name)
        assert pattern.pattern.converters == {}
        for person, expected in ((None, 302), (people["manager"], 302), (people["staff"], 403), (administrator, 200)):
            client = Client()
            if person:
                client.force_login(person)
            assert client.get(address).status_code == expected, (name, person)
    assert seen >= 10


ADMIN_PAGES = ("_changelist", "_add", "_change", "_delete", "_history")


def test_no_page_of_a_row_in_the_administration_opens_for_others() -> None:
    """Addresses of single rows are walked as well; who is no administrator sees none, whatever the number."""
    manager, staff = make_user("manager"), make_user("staff", is_staff=True)
    clients = {None: Client(), manager: Client(), staff: Client()}
    for person, client in clients.items():
        if person is not None:
            client.force_login(person)
    seen, open_to = 0, []
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if not (name.startswith("admin:") and name.endswith(ADMIN_PAGES)) or name == "admin:password_change":
            continue
        seen += 1
        address = reverse(name, kwargs=dict.fromkeys(pattern.pattern.converters, str(manager.pk)))
        for person, client in clients.items():
            answers = [client.get(address), client.post(address, {"post": "yes"})]
            # Staff without a right over the row are told so, or sent to the front page of the administration.
            refused = all(answer.status_code in (302, 403) for answer in answers)
            if not refused or (person is not staff and any(answer.status_code != 302 for answer in answers)):
                open_to.append((name, str(person), [answer.status_code for answer in answers]))
    assert open_to == []
    assert seen >= 5 * 20
    assert User.objects.filter(pk=manager.pk).exists()


def test_addresses_that_need_no_login_give_nothing_away() -> None:
    """Whoever comes without the secret in the address, and whoever has no part in a project, gets one and the same."""
    project: Project = learning.open_crowd(make_user("owner"))
    outsider = make_user("outsider")
    values = {"secret": "s" * 43, "token": "t" * 43, "slug": project.slug}
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


def account_address(name: str, pattern: URLPattern, pk: int) -> str:
    """Return an address of the sign-in library that names somebody else's row, or nothing there is."""
    given = {"key": "0", "uidb36": "0", "provider_id": "none", "pk": pk}
    for kwargs in ({argument: given[argument] for argument in pattern.pattern.converters if argument in given}, given):
        for wanted in (kwargs, {"pk": pk}, {"key": "0"}, {"uidb36": "0", "key": "0"}, {"provider_id": "none"}):
            with contextlib.suppress(NoReverseMatch):
                return reverse(name, kwargs=wanted)
    raise AssertionError(name)


def test_pages_of_the_sign_in_library_are_about_oneself() -> None:
    """A visitor is asked to log in, or sees a form of the few that come before a login; nobody sees another person."""
    other = make_user("somebody-else", email="else@example.org")
    person = make_user("person")
    own = Client(raise_request_exception=False)
    own.force_login(person)
    open_pages = set()
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if not name.startswith(OWN_ACCOUNT):
            continue
        address = account_address(name, pattern, other.pk)
        for client in (Client(raise_request_exception=False), own):
            answer = client.get(address)
            assert answer.status_code < 500, name
            assert b"somebody-else" not in answer.content, name
            assert b"else@example.org" not in answer.content, name
            if client is not own and outcome(answer) == "+" and answer.status_code == 200:
                open_pages.add(name)
    assert open_pages == OPEN_BEFORE_LOGIN
