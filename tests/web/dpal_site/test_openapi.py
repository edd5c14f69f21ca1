import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from django.contrib.auth.models import Group, Permission
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import Phase, given
from hypothesis import seed as seeded
from jsonschema_rs import Draft202012Validator
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks

from addons.language_models.models import WordsDraft
from addons.webhooks.models import Webhook, WebhookDelivery
from annotation.choices.classes import FurtherClass
from annotation.choices.presets import PRESETS
from annotation.data.services import exports, forgetting
from annotation.gates.comparison import own_settings
from annotation.models import Assignment, Job, Picture, Project, Query, Role
from annotation.models.quality import GoldQuery
from annotation.people.services import crowd_links, invitations, limits, members
from annotation.projects.forms.configuration import file_of
from annotation.projects.services import classes, drafts
from annotation.questions.services import flags, labels
from annotation.questions.services import guidelines as guideline_pictures
from annotation.review import selectors
from annotation.review import services as comparing
from annotation.review import services as decisions
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal_site.wsgi import application
from learner.models import Round, SharesReport, TrainingRun
from learner.releases.services import channels
from tests import learning, streaming, studies
from tests.counting import new_counter
from tests.db.learner.shares.test_services import released
from tests.factories import (
    a_png,
    make_project,
    make_records,
    make_user,
    open_population,
    open_preset,
    open_records,
    write_settings,
)
from tests.fuzzing import TIMES, fuzz
from tests.studies import connect, open_paid_crowd, open_study

pytestmark = pytest.mark.django_db(transaction=True)
REQUESTS_PER_ROUTE = 4
ROUTES = 170
# Routes are taken in so many parts, of which an ordinary run asks one what is made up.
PARTS = 8
# Routes that the scope for reading projects opens.
READ_WITH_PROJECTS = tuple(
    f"/api/v1/{path}"
    for path in (
        "projects",
        "projects/{slug}",
        "projects/{slug}/next-step",
        "projects/{slug}/members",
        "projects/{slug}/log",
        "projects/{slug}/guidelines",
        "projects/{slug}/gate",
        "projects/{slug}/groups",
        "projects/{slug}/invitations",
        "projects/{slug}/crowd-links",
        "projects/{slug}/studies",
        "projects/{slug}/studies/account",
        "projects/{slug}/studies/{study_id}",
        "projects/{slug}/guidelines/pictures",
        "projects/{slug}/guidelines/pictures/{digest}",
        "projects/{slug}/configuration",
        "projects/{slug}/configuration/changes",
        "projects/{slug}/configuration/file",
        "choices",
        "projects/{slug}/description",
        "projects/{slug}/retention",
        "projects/{slug}/deletion",
        "projects/{slug}/work",
        "projects/{slug}/comparison",
        "projects/{slug}/webhooks",
        "projects/{slug}/webhooks/deliveries",
        "projects/{slug}/words-drafts/{words_id}",
    )
)
CHECKED = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(autouse=True)
def own_counter(settings, tmp_path, monkeypatch) -> None:
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    settings.ALLOWED_HOSTS = ["*"]
    # No worker runs, so that nobody asks it anything.
    settings.PROLIFIC_URL = "http://127.0.0.1:9"
    settings.WEBHOOK_HOSTS = ["hooks.example"]
    settings.LANGUAGE_MODELS = {"ours": ("http://127.0.0.1:9/", "small", "")}
    settings.POOL_SOURCES = ["file:///srv/lake"]


@dataclass
class Waiting:
    stuck: Any
    gated: Any
    secret: Any
    few: Any
    counted: Any

    @classmethod
    def opened(cls, person: Any) -> "Waiting":
        stuck = open_preset(person, "pool-experts", text_columns=16)
        Round.objects.create(project=stuck, number=1, strategy="random", requested=1)
        gated = learning.open_crowd(person)
        learning.upload(gated, [["play jazz", "a"], ["play jazz", "b"]], ["text", "contributor"])
        secret = learning.open_secret(person)
        learning.fill_trusted(secret)
        learning.work_off(secret)
        few = learning.open_trusted(person, selection="random", round_size=50, labels_per_release=50)
        learning.fill_trusted(few, number=5)
        learning.work_off(few)
        learning.label_everything(few, make_user())
        learning.work_off(few)
        counted = released(owner=person)
        return cls(stuck, gated, secret, few, counted)

    def projects(self, path: str) -> dict[str, Any]:
        if path.endswith("/block/close"):
            Round.objects.filter(project=self.secret).update(closes_at=Now() + timedelta(days=1))
        if path.endswith("/trainings"):
            TrainingRun.objects.filter(project=self.few).delete()
        if path.endswith("/shares"):
            SharesReport.objects.filter(project=self.counted).delete()
        return {"/shares": self.counted, "/retry": self.stuck, "/cancel": self.stuck, "/gate": self.gated} | {
            "/block/close": self.secret,
            "/trainings": self.few,
        }

    def kind_in(self, path: str) -> str:
        return "round" if path.endswith("/retry") else "job"

    def id_in(self, path: str) -> str:
        if path.endswith(("/cancel", "/send")):
            return str(Job.objects.create(project=self.stuck, kind="compare").pk)
        rounds = Round.objects.filter(project=self.stuck)
        rounds.update(state="failed", error="It did not end well.", finished_at=Now())
        return str(rounds.latest("pk").pk)

    def upload(self) -> Any:
        Job.objects.filter(project=self.gated, kind="gate").update(state="failed", error="no", finished_at=Now())
        return self.gated.datasets.get()

    def draft(self, project: Any, person: Any) -> WordsDraft:
        shown = {"endpoint": "ours", "model": "small", "classes": ["a"], "question": "?", "examples": 1}
        return WordsDraft.objects.create(owner=person, project=project, ended_at=timezone.now(), **shown)

    def delivery(self, project: Any) -> WebhookDelivery:
        made = Webhook.objects.create(project=project, url="https://hooks.example/", events=["round"], salt=b"s")
        return WebhookDelivery.objects.create(webhook=made, event="round", subject="round 1", body="{}")


@dataclass
class Site:
    person: Any
    project: Any
    stream: Any
    secret: str
    population: Any
    crowd: Any
    pictured: Any
    spare: Any
    waiting: "Waiting"
    gated: Any
    asked: bool = False

    def ask(self, case: Any, *, secret: str | None = None, **changes: dict[str, Any]) -> int:
        for part, values in changes.items():
            setattr(case, part, {**(getattr(case, part) or {}), **values})
        headers = {"Authorization": f"Bearer {self.secret if secret is None else secret}"}
        response = case.call(headers=headers)
        case.validate_response(response, checks=CHECKED)
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]
        return response.status_code

    def job_in(self, path: str) -> str:
        if not path.endswith("/file"):
            return str(Job.objects.filter(project=self.project).first().pk)
        job = exports.start_export(project=self.project, owner=self.person, format="csv").job
        exports.make_export(job_id=str(job.pk))
        return str(job.pk)

    def real_path(self, operation: Any) -> dict[str, str]:
        known: dict[str, Callable[[], str]] = {
            "slug": lambda: self.named(operation.path).slug,
            "study_id": lambda: str(self.crowd.crowd_studies.first().pk),
            "job_id": lambda: self.job_in(operation.path),
            "assignment_id": lambda: (
                self.given() if operation.path.endswith("/correction") else self.claimed(self.named(operation.path))
            ),
            "digest": self.drawn,
            "other": lambda: self.stream.slug,
            "population": lambda: self.population.slug,
            # What is taken back is not what other routes are asked about.
            "version": lambda: "1" if operation.path.endswith("/retire") else "latest",
            "name": lambda: "spending" if "/dashboard/" in operation.path else "privacy.json",
            "before": lambda: "1",
            "channel": self.moved,
            "query_id": lambda: self.question_in(operation.path),
            "request_id": self.wished,
            "kind": lambda: self.waiting.kind_in(operation.path),
            "work_id": lambda: self.waiting.id_in(operation.path),
            "draft_id": self.drafted,
            "words_id": lambda: str(self.waiting.draft(self.project, self.person).pk),
            "webhook_id": lambda: str(self.waiting.delivery(self.project).webhook_id),
            "delivery_id": lambda: str(self.waiting.delivery(self.project).pk),
            "dataset_id": lambda: str(
                make_records(self.gated, ["play jazz"])[0].dataset_id
                if operation.path.endswith("/survey")
                else self.waiting.upload().pk
            ),
            **self.real_people(),
            "check_id": lambda: str(self.check_in(self.named(operation.path)).pk),
            "report_id": lambda: str(self.project.reports.filter(query=self.commented()).latest("pk").pk),
        }
        return {one.name: known[one.name]() for one in operation.path_parameters}

    def real_people(self) -> dict[str, Callable[[], str]]:
        role, days = Role.ANNOTATOR, timedelta(days=1)
        link = {"platform": "prolific", "study": "", "answers_wanted": 1, "maximum_participants": 1}
        group = Group.objects.get(name="Night shift")
        into: dict[str, Any] = {"project": self.project, "role": role}
        return {
            "membership_id": lambda: str(members.add_member(project=self.project, user=make_user(), role=role).pk),
            "given_id": lambda: str(members.give_role(group=group, project=self.project, role=role).pk),
            "invitation_id": lambda: str(
                invitations.create_invitation(owner=self.person, maximum_uses=1, lifetime=days, **into)[0].pk
            ),
            "link_id": lambda: str(
                crowd_links.create_link(project=self.crowd, owner=self.person, lifetime=days, **link)[0].pk
            ),
            "wish_id": lambda: str(
                limits.appoint_budget_manager(
                    account=self.population, user=make_user(), reason="r", actor=self.person
                ).pk
            ),
        }

    def check_in(self, project: Any) -> GoldQuery:
        fields = {"rows": 1, "pixels": "pixels.npy"} if project == self.pictured else {"texts": ["a check"]}
        (record,) = make_records(project, role="public_test", **fields)
        if project == self.pictured:
            Picture.objects.create(record=record, width=3, height=2, content=b"as kept")
        asked = Query.objects.create(
            project=project, record=record, state="gold", round_number=0, overlap=9, open_slots=9
        )
        return GoldQuery.objects.create(query=asked, choice=0, source="public", added_by=self.person)

    def set_aside(self) -> str:
        (query,) = open_records(self.project, 1, round_number=99)
        flags.set_aside(project=self.project, query=query)
        return str(query.pk)

    def given(self) -> str:
        open_records(self.project, 1, round_number=98)
        turn = learning.queue.claim_next(project=self.project, user=self.person)
        labels.submit_label(assignment=turn, choice=0)
        return str(turn.pk)

    def about_studies(self) -> dict[str, Any]:
        # One of the routes forgets the account.
        connect(self.crowd, self.person)
        study = self.crowd.crowd_studies.first()
        participant, submission = studies.waiting(study)
        study.bonus_sheets.all().delete()
        study.bonus_sheets.create(state="unclear", external_id="x", paying_at=Now(), created_by=self.person)
        return {
            "/account": {"token": "not-a-real-token", "fee_percent": "40"},
            "/studies": {"name": "n", "description": "d", "places": 1, "pay_per_place": "0.50", "minutes": 5},
            "/changes": {"change": "look"},
            "/decisions": {"participation": submission.pk, "decision": "return", "message": "it is not done"},
            "/bonuses": {"key": str(uuid4()), "bonuses": [{"participant": participant.user.username, "amount": "1"}]},
            "/bonuses/settle": {"came": True},
        }

    def drafted(self) -> str:
        typed = {"name": "Fruit", "question": "Which is it?", "classes": "fruit\ntool"}
        return str(drafts.start_draft(owner=self.person, preset="pool-experts", typed=typed).pk)

    def moved(self) -> str:
        for release in self.project.releases.filter(state="released").order_by("version"):
            channels.move_channel(release=release, channel="stable", reason="r", actor=self.person)
        return "stable"

    def question_in(self, path: str) -> str:
        if "/set-aside/" in path:
            return self.set_aside()
        if path.endswith("/image"):
            return self.answered(self.pictured) if "/reviews/" in path else str(self.pictured.queries.first().pk)
        return self.answered(self.project) if "/reviews/" in path else self.commented()

    def commented(self) -> str:
        turn = Assignment.objects.filter(project=self.project, annotator=self.person).order_by("created_at").first()
        if turn is None:
            turn = learning.queue.claim_next(project=self.project, user=self.person)
        flags.comment_on(assignment=turn, comment="blurred")
        return str(turn.query_id)

    def answered(self, project: Any) -> str:
        write_settings(project, reviewed="all")
        waiting = selectors.queue_of(project, self.person)
        if not waiting.exists():
            turn = learning.queue.claim_next(project=project, user=self.person)
            labels.submit_label(assignment=turn, choice=0)
        return str(waiting.first().pk)

    def named(self, path: str) -> Any:
        if "/studies" in path or "/crowd-links" in path or path.endswith("/tables"):
            return self.crowd
        by_ending = {
            "/{slug}/gate": self.gated,
            "/survey": self.gated,
            "/records": self.stream,
            "/image": self.pictured,
        }
        by_ending |= dict.fromkeys(("/ledger/limits", "/second-manager"), self.spare)
        by_ending |= {"/limits/{request_id}": self.spare} | self.waiting.projects(path)
        if path.endswith(("/archive", "/deletion")):
            return open_preset(self.person, "pool-experts", text_columns=16)
        return next((found for ending, found in by_ending.items() if path.endswith(ending)), self.project)

    def wished(self) -> str:
        open_ones = self.spare.limit_requests.filter(state="open")
        if not open_ones.exists():
            second = self.spare.memberships.exclude(user=self.person).get().user
            limits.ask_to_decide_alone(project=self.spare, reason="she leaves", actor=second)
        return str(open_ones.get().pk)

    def drawn(self) -> str:
        add = guideline_pictures.add_guideline_picture
        return str(add(project=self.project, data=a_png(), description="grey", by=self.person).digest)

    def claimed(self, project: Any) -> str:
        assignment = learning.queue.claim_next(project=project, user=self.person)
        return str(assignment.pk) if assignment else str(uuid4())

    def merges(self, *, into: str, taken: bool) -> dict[str, Any]:
        """Return what a merge, its taking back and a renaming say of one more class."""
        about = {"name": f"class {uuid4()}", "known_beforehand": True}
        further = FurtherClass(str(about["name"]))
        classes.add_class(project=self.project, further=further, known_beforehand=True, actor=self.person)
        if taken:
            classes.merge_class(project=self.project, name=further.name, into=into, known_beforehand=True)
        return {
            "/merges": about | {"into": into},
            "/merges/back": {"name": further.name},
            "/renames": about | {"to": f"class {uuid4()}"},
        }

    def sound(self, operation: Any) -> Any:
        bodies: dict[str, Any] = {
            "/pictures": {"file": a_png(), "description": "grey"},
            "/datasets": {"file": b"text\nhello\n", "text_column": "text"},
            "/drafts": {"file": b"text\nhello\n"},
            "/open": {},
            "/assignments/batch": {"most": 1},
            "/assignments/answers": {"answers": []},
            "/records": {"records": streaming.rows(2, seed=1)},
            "/questions/changes": {"action": "set_aside", "questions": [1]},
            "/shares": {"block": 2},
            "/label": {"choice": 0},
            "/skip": {"reason": "blurred"},
            "/assignments/{assignment_id}/comments": {"text": "blurred"},
            "/reports/{report_id}": {"text": "is it?"},
            "/configuration": {"settings": {}},
            "/plan/simulation": {"records": 300},
            "/predict": {"texts": ["apple pear"]},
            "/populations": {
                "name": "Readers",
                "unit": "contributor",
                "filter": "zcdp",
                "epsilon_limit": 4.0,
                "delta_limit": 1e-5,
                "second_manager": "second",
            },
            "/population": {"population": self.population.slug, "records_per_person": 1},
            "/members": {"username": "second", "role": "annotator"},
            "/groups": {"group": "Night shift", "role": "engineer"},
            **{ending: {"people": ["second"]} for ending in ("/people", "/people/removal")},
            "/mails": {"wanted": False},
            "/invitations": {"role": "annotator"},
            "/crowd-links": {"platform": "prolific"},
            "/managers": {"manager": make_user().get_username(), "reason": "she joins"},
            "/wishes/{wish_id}": {"decision": "refuse"},
            "/checks": {
                "dataset": self.project.datasets.filter(role="public_test").values_list("pk", flat=True).first(),
                "most": 3,
            },
            "/guidelines": {
                "text": "Say what it is.",
                "examples": [{"text": "a pear", "choice": 0, "reason": "round"}],
            },
            "/set-aside/{query_id}": {"decision": "leave_out"},
            "/flag": {"kind": "broken"},
            "/correction": {"choice": 1},
            "/limit": {"epsilon_limit": 900.0, "delta_limit": 1e-3, "reason": "less is enough"},
            "/channels/{channel}": {"version": 2, "reason": "better on all sets"},
            "/rollback": {"reason": "worse for some"},
            "/retire": {"reason": "wrong guidelines"},
            "/reviews/{query_id}": {"decision": "skip"},
            "/configuration/classes": {"name": f"class {uuid4()}", "known_beforehand": True},
            "/forgettings": {"contributor": "anna"},
            "/forgettings/preview": {"contributor": "anna"},
            "/description": {"question": "Fruit, or tool?"},
            "/state": {"state": "active"},
            "/retention": {"comments_days": 300},
            "/archive": {"archived": True},
            "/ledger/limits": {"epsilon_limit": 0.5, "delta_limit": 0.0, "reason": "less is enough"},
            "/limits/{request_id}": {"decision": "refuse"},
            "/second-manager": {"needed": True},
            "/retry": {},
            "/gate": {},
            "/{slug}/gate": own_settings(self.gated.settings),
            "/trainings": {},
            "/block/close": {},
            "/endorse": {"reason": "the test set is old"},
            "/exports": {"format": "csv"},
            "/words-drafts": {"endpoint": "ours"},
            "/webhooks": {"url": "https://hooks.example/", "events": ["round"]},
            "/webhooks/{webhook_id}": {"events": ["release"]},
        }
        if operation.path.endswith(("/merges", "/merges/back", "/renames")):
            bodies |= self.merges(into=str(self.project.classes[0]), taken=operation.path.endswith("/back"))
        people = {"contributor_column": "who"} if self.crowd.privacy_unit == "contributor" else {}
        bodies["/tables"] = {"address": "file:///srv/lake/log"} | people
        if operation.path.endswith("/projects"):
            bodies["/projects"] = file_of(self.project)
        if "/studies" in operation.path:
            bodies = self.about_studies()
            if operation.path.endswith("/bonuses"):
                self.crowd.crowd_studies.first().bonus_sheets.all().delete()
        if operation.path.endswith("/assignments/undo"):
            self.given()
        if operation.path.endswith("/agreement"):
            comparing.start_report(project=self.project, owner=self.person)
        if operation.path.endswith("/reviews/undo"):
            decisions.skip_review(project=self.project, person=self.person, query_id=int(self.answered(self.project)))
        made = {"path_parameters": self.real_path(operation)}
        bodies["/deletion"] = {"typed": made["path_parameters"].get("slug", "Day shift")}
        for ending, body in bodies.items():
            if operation.method in ("post", "patch") and operation.path.endswith(ending):
                kind = "multipart/form-data" if ending in ("/datasets", "/pictures", "/drafts") else "application/json"
                made |= {"body": body, "media_type": kind}
        return operation.Case(**made)


@pytest.fixture
def site(remembered: Callable[..., Project]) -> Site:
    project = remembered("two releases of experts", lambda: learning.released_experts(2))
    person = project.created_by
    person.is_staff = True
    person.save()
    person.user_permissions.add(*Permission.objects.filter(codename="add_project"))
    learning.work_off(project)
    learning.upload(project, [["apple saw", "anna"]], ["text", "contributor"])
    # While an upload waits to be read a new request would be refused; this one stands.
    forgetting.request_forgetting(project=project, name="anna", actor="t", send=False)
    stream = streaming.open_stream(person, "fraud-stream")
    members.add_member(project=project, user=person, role=Role.ANNOTATOR)
    _, secret = tokens.create_token(user=person, name="t", scopes=list(Scope), lifetime=timedelta(days=1))
    common = open_population(filter="zcdp", epsilon_limit=1000.0, owner=person, second=make_user("second"))
    Group.objects.create(name="Night shift")
    crowd = open_paid_crowd(person)
    connect(crowd, person)
    open_study(crowd, person, places=1000, reward_cents=1)
    pictured = make_project(owner=person, data_kind="image", image_height=2, image_width=3)
    for role in (Role.MANAGER, Role.ANNOTATOR):
        members.add_member(project=pictured, user=person, role=role)
    records = make_records(pictured, rows=2, pixels="pixels.npy")
    for record in records:
        Picture.objects.create(record=record, width=3, height=2, content=b"as kept")
    learning.queue.open_queries(project=pictured, round_number=1, record_ids=[record.pk for record in records])
    spare = open_preset(person, "pool-experts", text_columns=16)
    members.add_member(project=spare, user=make_user(), role=Role.MANAGER)
    gated = learning.open_crowd(person)
    waiting = Waiting.opened(person)
    return Site(person, project, stream, secret, common, crowd, pictured, spare, waiting, gated)


def operations(app: Any = application) -> list[Any]:
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    return [found.ok() for found in schema.get_all_operations()]


def not_fitting(operation: Any) -> dict[str, dict[str, Any]]:
    names = {one.name for one in operation.iter_parameters()}
    if "Idempotency-Key" in names:
        return {"headers": {"Idempotency-Key": "x" * 201}}
    for name in ("limit", "format", "kind", "size", "records", "flag", "unread", "grouping"):
        if name in names:
            return {"query": {name: "no such"}}
    if operation.body:
        return {"body": {"texts": [], "contributor": "", "oracle": "", "days": "none", "events": [], "typed": []}}
    return {"path_parameters": {"job_id": "none", "assignment_id": "none", "words_id": "none", "draft_id": "none"}}


def leading_nowhere(operation: Any) -> dict[str, dict[str, Any]]:
    """Return what to change in a sound request so that it names nothing, in its address or else in its body."""
    if operation.body and not operation.path_parameters:
        return {"body": {"population": "none"}}
    return {"path_parameters": {one.name: str(uuid4()) for one in operation.path_parameters}}


def ask_what_is_made_up(site: Site, operation: Any, mode: schemathesis.GenerationMode) -> None:
    @fuzz(REQUESTS_PER_ROUTE, phases=[Phase.generate])
    @given(case=operation.as_strategy(generation_mode=mode))
    def made_up(case: Any) -> None:
        # Every other request names what there is, so that bodies and queries are read, too.
        site.asked = not site.asked
        if site.asked and case.path_parameters:
            case.path_parameters = site.real_path(operation)
        site.ask(case)

    # The same requests in every ordinary run, others each time with `make fuzz`.
    (made_up if TIMES else seeded(1)(made_up))()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("in_turn", [True, False])
def test_every_answer_of_every_route_is_as_described(site, settings, in_turn):
    """Of what is refused alike everywhere each route is tried with one in turn, or every route with all."""
    settings.API_REQUESTS_PER_MINUTE = 10**9
    narrow = make_user()
    _, without = tokens.create_token(user=narrow, name="t", scopes=[Scope.PROJECTS_READ], lifetime=timedelta(days=1))
    _, other = tokens.create_token(user=narrow, name="t", scopes=[Scope.LABELS_READ], lifetime=timedelta(days=1))
    found = operations()
    assert len(found) == ROUTES
    for place, operation in enumerate(found):
        tried = {(401, 403, 429)[place % 3]} if in_turn else {401, 403, 429}
        assert site.ask(site.sound(operation)) < 300, operation.label
        if 401 in tried:
            assert site.ask(site.sound(operation), secret="none") == 401
        if 403 in tried:
            lacking = other if operation.method == "get" and operation.path in READ_WITH_PROJECTS else without
            assert site.ask(site.sound(operation), secret=lacking) == 403
        told = {int(status) for status in operation.responses.status_codes}
        for status, wrong in (({422}, not_fitting(operation)), ({404}, leading_nowhere(operation))):
            if status <= told:
                assert {site.ask(site.sound(operation), **wrong)} == status, operation.label
        if 429 in tried:
            settings.API_REQUESTS_PER_MINUTE = 0
            assert site.ask(site.sound(operation)) == 429
            settings.API_REQUESTS_PER_MINUTE = 10**9


@pytest.mark.one_in(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_made_up_is_answered_as_described(site, settings, part):
    settings.API_REQUESTS_PER_MINUTE = 10**9
    for operation in operations()[part::PARTS]:
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            if mode is schemathesis.GenerationMode.POSITIVE or operation.body or operation.query:
                ask_what_is_made_up(site, operation, mode)


def altered(change: Callable[[dict[str, Any]], None]) -> Any:
    def app(environ: Any, start_response: Any) -> Any:
        if environ["PATH_INFO"] != "/api/v1/openapi.json":
            return application(environ, start_response)
        schema = json.loads(b"".join(application(environ, lambda *_: None)))
        change(schema)
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(schema).encode()]

    return app


@pytest.mark.slow
def test_an_answer_that_differs_from_its_description_is_noticed(site):
    path = "/api/v1/projects/{slug}/models/{version}"

    def answer(schema: dict[str, Any]) -> dict[str, Any]:
        return schema["paths"][path]["get"]["responses"]["200"]

    def other_status(schema: dict[str, Any]) -> None:
        responses = schema["paths"][path]["get"]["responses"]
        responses["201"] = responses.pop("200")

    def other_type(schema: dict[str, Any]) -> None:
        answer(schema)["content"] = {"text/csv": {}}

    def other_schema(schema: dict[str, Any]) -> None:
        schema["components"]["schemas"]["ModelOut"]["properties"]["version"] = {"type": "string"}

    def other_header(schema: dict[str, Any]) -> None:
        answer(schema)["headers"] = {"ETag": {"required": True, "schema": {"type": "string"}}}

    for change in (other_status, other_type, other_schema, other_header):
        (operation,) = (one for one in operations(altered(change)) if one.path == path)
        with pytest.raises((Failure, FailureGroup)):
            site.ask(site.sound(operation))


def test_what_no_route_answers_is_a_problem_document_too(site, client):
    address = f"/api/v1/projects/{site.project.slug}"
    wrong = client.delete(address)
    assert (wrong.status_code, wrong["Content-Type"]) == (405, "application/problem+json")
    assert wrong["Allow"] == "GET"
    for absent in ("/api/v1/nothing", "/api/v2/", "/api/v1/projects/a%00b"):
        answer = client.get(absent)
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
        assert answer.json()["status"] == 404
    assert client.get("/nothing")["Content-Type"].startswith("text/html")


def test_a_stranger_finds_tags_examples_enums_and_the_settings_of_each_preset(client):
    told = client.get("/api/v1/openapi.json").json()
    schemas, tags = told["components"]["schemas"], {tag["name"]: tag["description"] for tag in told["tags"]}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert set(operation["tags"]) <= tags.keys(), (method, path)
            (sample,) = operation["x-codeSamples"]
            assert "{" not in sample["source"].split(" --json ")[0].replace("${", ""), sample
            for content in operation.get("requestBody", {}).get("content", {}).values():
                validator = Draft202012Validator({**content["schema"], "components": told["components"]})
                found = content["example"]
                binary = {name for name, value in found.items() if str(value).startswith("@")}
                assert not [each.message for each in validator.iter_errors(found) if not binary], (method, path, found)
    assert all(tags.values())
    assert schemas["ProjectOut"]["properties"]["oracle"] != {"type": "string", "title": "Oracle"}
    assert {one["properties"]["preset"]["const"] for one in schemas["ProjectIn"]["oneOf"]} == set(PRESETS)
    stream = schemas["Settings-fraud-stream"]["properties"]
    assert stream["pool_epsilon"]["type"] == "number"
    assert "random" in schemas["Settings-pool-experts"]["properties"]["selection"]["enum"]


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_projects_own_file_fits_the_schema_of_its_preset(client, preset):
    told = client.get("/api/v1/openapi.json").json()
    project = open_preset(make_user(), preset)
    schema = {"$ref": "#/components/schemas/ProjectIn", "components": told["components"]}
    validator = Draft202012Validator(schema)
    file = file_of(project)
    assert not [error.message for error in validator.iter_errors(file)]
    file["settings"]["no_such"] = 1
    assert not validator.is_valid(file)


def test_a_refusal_names_the_field_as_it_is_sent(site, client):
    sent = {"headers": {"Authorization": f"Bearer {site.secret}"}, "content_type": "application/json"}
    at = f"/api/v1/projects/{site.project.slug}"
    for path, body, field in (
        ("members", {"username": "second", "role": "queen"}, "role"),
        ("assignments/answers", {"answers": [{"assignment": "x"}]}, "answers.0.assignment"),
        ("ledger/limits", {"epsilon_limit": "x"}, "epsilon_limit"),
    ):
        errors = client.post(f"{at}/{path}", json.dumps(body), **sent).json()["errors"]
        assert field in {error["field"] for error in errors}, errors
    errors = client.get(f"{at}/datasets?limit=none", **sent).json()["errors"]
    assert [error["field"] for error in errors] == ["limit"]
    (role,) = (
        error["rule"]
        for error in client.post(f"{at}/members", json.dumps({"username": "a", "role": "queen"}), **sent).json()[
            "errors"
        ]
    )
    assert "annotator" in role
