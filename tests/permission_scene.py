"""A project in which everything an address can name exists, one person of each kind, and all addresses of the site."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.shortcuts import resolve_url
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse
from django.utils import timezone

from addons.language_models.models import WordsDraft
from addons.prolific.models import CrowdStudy
from addons.webhooks.models import Webhook, WebhookDelivery
from annotation.data.services import drafts, exports
from annotation.models import Assignment, DatasetRole, Membership, Project, Query, Role
from annotation.models.joining import CrowdLink
from annotation.people.services import crowd_links, invitations, limits, members
from annotation.people.views import SESSION_KEY
from annotation.questions.services import queue
from annotation.questions.services.guidelines import add_guideline_picture
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal_site.api import api
from tests import learning
from tests.factories import a_png, make_candidates, make_records, make_user, open_population, open_records

# Whoever came by a crowd link is asked for what belongs to the crowd project they came to.
PEOPLE = ("anonymous", "outsider", "annotator", "engineer", "manager", "administrator", "participant", "reviewer")


def named_patterns(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{prefix}{pattern.namespace}:" if pattern.namespace else prefix
            yield from named_patterns(pattern.url_patterns, inner)
        else:
            yield f"{prefix}{pattern.name or ''}", pattern


def api_routes() -> Iterator[tuple[str, str]]:
    for _prefix, router in api._routers:
        for view in router.path_operations.values():
            for operation in view.operations:
                for method in operation.methods:
                    yield operation.view_func.__name__, method


METHOD_NOT_ALLOWED, REDIRECT = 405, 302
# Pages that ask who somebody is, or ask again before something that matters.
ASKING = ("account_login", "account_reauthenticate", "mfa_reauthenticate", "admin:login")


class Scene:
    def __init__(self, named: str = "") -> None:
        self.people = {name: make_user(f"{name}{named}") for name in PEOPLE[1:5]}
        self.people["administrator"] = make_user(f"administrator{named}", is_staff=True, is_superuser=True)
        manager, annotator = self.people["manager"], self.people["annotator"]
        self.project: Project = learning.open_trusted(manager)
        learning.fill_trusted(self.project)
        release = learning.run_to_release(self.project, make_user(), version=1)
        self.people["reviewer"] = make_user(f"reviewer{named}")
        for name in ("annotator", "engineer", "reviewer"):
            members.add_member(project=self.project, user=self.people[name], role=Role(name))
        open_records(self.project, 3, round_number=9)
        self.lease: Assignment = queue.claim_next(project=self.project, user=annotator)
        self.lease_membership = Membership.objects.get(project=self.project, user=annotator)
        disputed = Query.objects.filter(project=self.project).exclude(pk=self.lease.query_id).latest("pk")
        Query.objects.filter(pk=disputed.pk).update(state="disputed", open_slots=0)
        now = timezone.now()
        Assignment.objects.create(
            project=self.project,
            query=disputed,
            annotator=annotator,
            state="skipped",
            leased_until=now,
            finished_at=now,
        )
        self.project.reports.create(
            query=disputed,
            annotator=annotator,
            kind="broken",
            comment="cut off",
            reply="where exactly?",
            resolved_at=now,
            resolved_by=manager,
        )
        report = self.project.reports.create(query=disputed, annotator=annotator, kind="comment", comment="see here")
        invitation, _secret = invitations.create_invitation(
            project=self.project, owner=manager, role=Role.ANNOTATOR, maximum_uses=1, lifetime=timedelta(days=1)
        )
        crowd = learning.open_crowd(manager)
        for name in ("annotator", "engineer"):
            members.add_member(project=crowd, user=self.people[name], role=Role(name))
        link: CrowdLink = crowd.crowd_links.create(
            digest=f"digest{named}",
            platform="prolific",
            answers_wanted=1,
            completion_code="CODE",
            maximum_participants=1,
            expires_at=invitation.expires_at,
            created_by=manager,
        )
        study = CrowdStudy.objects.create(
            project=crowd, link=link, name="n", places=1, reward_cents=1, minutes=1, fee_percent=0, created_by=manager
        )
        study.bonus_sheets.create(created_by=manager, state="unclear", external_id="sheet", paying_at=timezone.now())
        self.participant = crowd_links.join(link=link, pid="somebody")
        self.people["participant"] = self.participant.user
        candidates = make_candidates(crowd, ["play jazz", "play rock"])
        queue.open_queries(project=crowd, round_number=1, query_ids=[query.pk for query in candidates])
        in_the_crowd = queue.claim_next(project=crowd, user=self.participant.user)
        assert in_the_crowd is not None
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
        words = WordsDraft.objects.create(
            owner=manager, project=self.project, endpoint="ours", model="small", classes=["a"], question="?", examples=1
        )
        wanted = self.project.limit_requests.create(
            kind="alone", reason="she leaves", requested_by=manager, expires_at=invitation.expires_at
        )
        group = Group.objects.create(name=f"Night shift{named}")
        group.user_set.add(make_user())
        given = members.give_role(group=group, project=self.project, role=Role.ANNOTATOR)
        common = open_population(name=f"Everybody{named}", epsilon_limit=1000.0, delta_limit=1e-4, owner=manager)
        wish = limits.appoint_budget_manager(account=common, user=make_user(), reason="she joins", actor=manager)
        self.arguments: dict[str, Any] = {
            "population": common.slug,
            "wish_id": wish.pk,
            "given_id": given.pk,
            "webhook_id": webhook.pk,
            "delivery_id": delivery.pk,
            "slug": self.project.slug,
            "other": self.project.slug,
            "preset": "pool-experts",
            "step": "task",
            "request_id": wanted.pk,
            "fingerprint": "0" * 64,
            "membership_id": self.lease_membership.pk,
            "invitation_id": invitation.pk,
            "link_id": link.pk,
            "study_id": study.pk,
            "check_id": 0,
            "query_id": disputed.pk,
            "report_id": report.pk,
            "dataset_id": pool.pk,
            "draft_id": draft.pk,
            "words_id": words.pk,
            "account_id": self.project.pool_account_id,
            "token_id": token.pk,
            "assignment_id": self.lease.pk,
            "job_id": pool.job_id,
            "version": release.version,
            "before": release.version,
            "channel": "stable",
            "name": "weights.json",
            "format": "csv",
            "kind": "reliability",
            "key": "none",
            "work_id": "none",
            "digest": self.picture(self.project),
        }
        # The same picture of another project, which its participants see.
        self.picture(crowd)
        crowd_pages = (
            "annotation:crowd_links",
            "annotation:revoke_crowd_link",
            "prolific:studies",
            "prolific:connect_platform",
            "prolific:study",
            "prolific:change_study",
            "prolific:judge_submission",
            "prolific:give_bonuses",
            "prolific:settle_bonuses",
            *(f"api:{name}" for name in ("get_study", "change_study", "decide_participation")),
            *(f"api:{name}" for name in ("give_bonuses", "settle_bonuses", "open_study")),
            *(f"api:{name}" for name in ("list_crowd_links", "make_crowd_link", "revoke_crowd_link")),
            *("api:get_gate", "api:choose_gate"),
            *(f"api:{name}" for name in ("get_platform", "connect_platform", "disconnect_platform")),
            "annotation:gate",
        )
        written = self.written(self.project)
        (behind_gate,) = make_records(crowd, ["play jazz"])
        self.own: dict[str, dict[str, Any]] = {name: {"slug": crowd.slug} for name in crowd_pages} | {
            "api:send_work_again": {"kind": "job", "work_id": str(pool.job_id)},
            "api:stop_work": {"kind": "job", "work_id": str(pool.job_id)},
            "operations:send_again": {"kind": "job", "key": str(pool.job_id)},
            "operations:cancel": {"kind": "job", "key": str(pool.job_id)},
            "annotation:survey": {"slug": crowd.slug, "dataset_id": behind_gate.dataset_id},
            "api:survey_dataset": {"slug": crowd.slug, "dataset_id": behind_gate.dataset_id},
            "learner:dashboard_plot": {"name": "spending"},
            "learner:dashboard_csv": {"name": "spending"},
            "api:list_dashboard_rows": {"name": "spending"},
            "learner:cancel_work": {"kind": "job", "key": str(pool.job_id)},
            "learner:retry_work": {"kind": "job", "key": str(pool.job_id)},
            "api:cancel_work": {"kind": "job", "work_id": str(pool.job_id)},
            "api:retry_work": {"kind": "job", "work_id": str(pool.job_id)},
            "learner:measure_plot": {"dataset_id": evaluated.pk},
            "annotation:export_file": {"job_id": written},
            "api:get_export": {"job_id": written},
        }

        self.of_participants = {"slug": crowd.slug, "assignment_id": in_the_crowd.pk}

    def picture(self, project: Project) -> str:
        manager = self.people["manager"]
        made = add_guideline_picture(project=project, data=a_png(), description="blue", by=manager)
        return str(made.digest)

    def written(self, project: Project) -> UUID:
        job = exports.start_export(project=project, owner=self.people["manager"], format="csv").job
        exports.make_export(job_id=str(job.pk))
        return job.pk

    def values(self, name: str, pattern: URLPattern, person: str = "") -> dict[str, Any]:
        known = self.arguments | self.own.get(name, {}) | (self.of_participants if person == "participant" else {})
        return {argument: known[argument] for argument in pattern.pattern.converters}

    def address(self, name: str, pattern: URLPattern, person: str = "") -> str:
        return reverse(name, kwargs=self.values(name, pattern, person))

    def client(self, person: str) -> Client:
        client = Client(raise_request_exception=False)
        if person != "anonymous":
            client.force_login(self.people[person])
        if person == "participant":
            session = client.session
            session[SESSION_KEY] = self.participant.pk
            session.save()
        return client

    def with_token(self, person: str, scopes: list[Scope]) -> Client:
        if person == "anonymous":
            return Client(raise_request_exception=False)
        _, secret = tokens.create_token(
            user=self.people[person], name="test", scopes=scopes, lifetime=timedelta(days=1)
        )
        return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})


def letter(client: Client, address: str) -> str:
    """Return what a person gets at a page, whether they look at it or send something; two letters if they differ."""
    return letters_of(look(client, address), send_nothing(client, address))


def look(client: Client, address: str) -> Any:
    return _as_the_same_person(client, lambda: client.get(address))


def send_nothing(client: Client, address: str) -> Any:
    return _as_the_same_person(client, lambda: client.post(address))


def _as_the_same_person(client: Client, send: Any) -> Any:
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    answer = undone(send)
    # Whoever logged out is logged in again.
    client.cookies.load(cookies)
    return answer


def letters_of(*answers: Any) -> str:
    return "".join(dict.fromkeys(outcome(one) for one in answers if one.status_code != METHOD_NOT_ALLOWED))


def as_row(letters: list[str]) -> str:
    """Return a row of a table: what each kind of person gets, apart where somebody gets two letters."""
    return "".join(letters) if max(map(len, letters)) == 1 else " ".join(letters)


def as_letters(row: str) -> list[str]:
    return row.split() if " " in row else list(row)


def outcome(response: Any) -> str:
    """Return the letter a response stands for; whatever went on inside counts as let in."""
    status = response.status_code
    onward = response["Location"] if status == REDIRECT else ""
    if status == 401 or onward.startswith(tuple(resolve_url(page) for page in (settings.LOGIN_URL, *ASKING))):
        return "L"
    if onward == reverse("admin:index"):
        # How the administration says that there is no such row.
        return "-"
    if status >= 500:
        return "!"
    return {404: "-", 403: "x"}.get(status, "+")


def undone(send: Any) -> Any:
    with transaction.atomic():
        response = send()
        if getattr(response, "streaming", False):
            response.close()
        transaction.set_rollback(True)
    return response
