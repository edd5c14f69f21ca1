import contextlib
import pickle
import re
import socket
import urllib.request
from datetime import timedelta
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import skops.io
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.exceptions import FieldError
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver, path, reverse
from PIL import Image

import dpal_site.urls
from annotation.data.pixels import png_of
from annotation.data.services import datasets
from annotation.errors import InvalidUpload
from annotation.models import Membership, Query, Record, Report, Role
from annotation.people.services import invitations
from annotation.work.services import tokens
from annotation.work.services.files import reader_of
from annotation.work.services.tokens import Scope
from dpal_site.celery import app as celery_app
from learner.releases.artifacts import files as artifacts
from privacy.wording import message_of
from tests.clients import browser_of
from tests.counting import new_counter
from tests.factories import add_members, make_project, make_records, make_user, open_preset, receive_upload
from tests.permission_rows import PAGES
from tests.permission_scene import Scene, named_patterns

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
INSIDE = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:6379/",
    "http://localhost/",
    "file:///etc/passwd",
)


@pytest.fixture(autouse=True)
def quiet(monkeypatch, settings, tmp_path):
    settings.LEDGER_COUNTER_PATH = new_counter(tmp_path)
    cache.clear()


@pytest.fixture
def plant(settings):
    def planted(**views):
        settings.ROOT_URLCONF = tuple([path(f"planted/{name}/", view) for name, view in views.items()]) + tuple(
            dpal_site.urls.urlpatterns
        )

    return planted


def looked_at(send):
    with transaction.atomic():
        answer = send()
        answer.text_sent = b"".join(answer).decode(errors="replace")
        transaction.set_rollback(True)
    return answer


def logged_in(user):
    return browser_of(user, raise_request_exception=False)


# --- the server asks an address a visitor chose


@pytest.fixture
def asked(monkeypatch):
    hosts = []

    def refuse(*address, **_options):
        hosts.append(address)
        raise OSError("no connection leaves this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return hosts


class TestRequestsIntoTheNetworkBehind:
    def test_the_probe_catches_an_import_from_an_address(self, plant, asked):
        def fetch(request):
            try:
                return HttpResponse(urllib.request.urlopen(request.GET["url"], timeout=1).read())
            except OSError:
                return HttpResponse("no")

        plant(fetch=fetch)
        Client().get("/planted/fetch/", {"url": INSIDE[1]})
        assert asked

    @pytest.mark.parametrize("url", INSIDE)
    def test_no_import_asks_what_a_row_names(self, asked, url):
        manager = make_user()
        project = open_preset(
            manager,
            "pool-experts",
            name="Messages",
            data_kind="text",
            classes=["spam", "ham"],
            question="Is this spam?",
        )
        _, secret = tokens.create_token(
            user=manager, name="t", scopes=[Scope.DATASETS_WRITE], lifetime=timedelta(days=1)
        )
        client = Client(headers={"Authorization": f"Bearer {secret}"}, raise_request_exception=False)
        files = {
            "rows.csv": f"text,image,url\n{url},{url},{url}\n",
            "tasks.json": f'[{{"data": {{"text": "{url}", "image": "{url}"}}, "file_upload": "{url}"}}]',
            "rows.jsonl": f'{{"text": "{url}", "$ref": "{url}"}}\n',
        }
        for name, content in files.items():
            file = SimpleUploadedFile(name, content.encode())
            answer = client.post(
                f"/api/v1/projects/{project.slug}/datasets", {"file": file, "url": url, "text_column": "text"}
            )
            assert answer.status_code < 500
        for dataset in project.datasets.all():
            datasets.import_dataset(job_id=dataset.job_id)
        assert Record.objects.filter(text=url).exists()
        assert asked == []

    def test_the_probe_catches_a_webhook_that_sends_anywhere(self, plant, asked):
        def tell(request):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(request.POST["url"], data=b"{}", timeout=1)
            return HttpResponse("saved")

        plant(tell=tell)
        Client().post("/planted/tell/", {"url": INSIDE[0]})
        assert asked

    @pytest.mark.parametrize("url", [*INSIDE, "https://169.254.169.254/", "https://localhost/", "https://[::1]/"])
    def test_no_webhook_is_taken_that_leads_inside(self, asked, url, settings):
        settings.WEBHOOK_HOSTS = ["hooks.example.org"]
        manager = make_user()
        project = make_project(owner=manager)
        add_members(project, manager, role=Role.MANAGER)
        page = logged_in(manager).post(
            reverse("webhooks:webhooks", args=[project.slug]), {"url": url, "events": ["release"]}
        )
        assert page.status_code == 422
        assert asked == []


# --- a visitor names the fields of a query


LOOKUPS = ("password", "created_by__password", "user__api_tokens__digest")
# Tokens, ids, durations, and the mark of a moving part, which is drawn from its address as well.
PASSING = re.compile(
    r"[A-Za-z0-9_-]{36,}|[0-9a-f]{8}-[0-9a-f-]{27}|\d+(\.\d+)? (ms|s)\b"
    r'|"If-None-Match": "[0-9a-f]{32}"'
)


def told_apart(client, address):
    """Return the parameters by which a page's answer depends on a secret: on its first letter, or on its order."""

    def body(name, value):
        answer = looked_at(lambda: client.get(address, {name: value}))
        assert answer.status_code < 500
        text = answer.text_sent
        # The parameter itself, which links repeat, and what differs from one answer to the next.
        for own in (value, quote(value)):
            for repeated in (f"{name}={own}", f"{name}%3D{own}", f'name="{name}" value="{own}"'):
                text = text.replace(repeated, "")
        return answer.status_code, PASSING.sub("", text)

    filters = [f"{lookup}__startswith" for lookup in LOOKUPS]
    found = [name for name in filters if body(name, "p") != body(name, "q")]
    orders = [(name, lookup) for lookup in LOOKUPS for name in ("ordering", "o")]
    found += [f"{name}={lookup}" for name, lookup in orders if body(name, lookup) != body(name, f"-{lookup}")]
    return found


class TestQueriesByFieldName:
    def test_the_probe_catches_filters_and_orders_of_the_visitors(self, plant):
        for name in ("ann", "bob"):
            User.objects.create_user(name, password=f"{name} has a password")

        def people(request):
            try:
                order = request.GET.get("ordering", "pk")
                given = {name: value for name, value in request.GET.items() if name != "ordering"}
                names = User.objects.filter(**given).order_by(order).values_list("username", flat=True)
                return HttpResponse(",".join(names))
            except FieldError:
                return HttpResponse("no such field")

        plant(people=people)
        assert {"password__startswith", "ordering=password"} <= set(told_apart(Client(), "/planted/people/"))

    @pytest.mark.slow
    def test_no_page_and_no_route_answers_by_a_secret(self):
        scene = Scene()
        administrator = scene.client("administrator")
        manager = scene.client("manager")
        program = scene.with_token("manager", list(Scope))
        lists = [
            reverse(f"admin:{name}_changelist")
            for name in ("auth_user", "annotation_project", "annotation_membership", "annotation_dataset")
        ]
        pages = ["projects", "people", "data", "quality", "budget", "invitations", "tokens"]
        found = {address: told_apart(administrator, address) for address in lists}
        for name, pattern in named_patterns(get_resolver().url_patterns):
            if name in PAGES and name.partition(":")[2] in pages:
                found[name] = told_apart(manager, scene.address(name, pattern))
        for route in (
            "",
            f"/{scene.project.slug}/datasets",
            f"/{scene.project.slug}/labels",
            f"/{scene.project.slug}/models",
        ):
            found[route] = told_apart(program, f"/api/v1/projects{route}")
        assert {name: names for name, names in found.items() if names} == {}
        assert len(found) >= 12


# --- a key everybody knows


# --- script in what is uploaded, labelled or typed


PAYLOAD = "<script>alert(1)</script><svg onload=alert(2)><img src=x onerror=alert(3)>\"'><a href=javascript:alert(4)>"


class Live(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "script" and not (given.get("src") or "").startswith("/static/"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in given if name.startswith("on")]
        self.found += [tag for name in ("href", "src", "action") if (given.get(name) or "").startswith("javascript:")]
        if tag in ("iframe", "object", "embed", "base"):
            self.found.append(tag)


class TestScript:
    @pytest.fixture
    def scene(self):
        manager = User.objects.create_user("<b onclick=alert(5)>", first_name=PAYLOAD)
        project = make_project(
            owner=manager, name=PAYLOAD[:110], question=PAYLOAD, classes=[PAYLOAD, "other"], guidelines=PAYLOAD
        )
        for role in (Role.MANAGER, Role.ANNOTATOR, Role.ENGINEER):
            add_members(project, manager, role=role)
        records = make_records(project, [PAYLOAD] * 3)
        records[0].dataset.name = PAYLOAD
        records[0].dataset.bad_row_report = [{"line": 1, "column": PAYLOAD, "reason": message_of(PAYLOAD)}]
        records[0].dataset.bad_row_count = 1
        records[0].dataset.save()
        Query.objects.bulk_create(
            Query(project=project, record=record, state=state, round_number=1, open_slots=state == "open")
            for record, state in zip(records, ("open", "disputed", "set_aside"), strict=True)
        )
        for query in Query.objects.all():
            Report.objects.create(project=project, query=query, annotator=manager, kind="comment", comment=PAYLOAD)
        return manager, project, records[0].dataset

    def test_the_probe_catches_a_page_that_escapes_nothing(self, plant, scene):
        plant(show=lambda _request: HttpResponse(f"<p>{Record.objects.first().text}</p>"))
        assert set(Live(Client().get("/planted/show/").content.decode()).found) == {
            "script",
            "svg onload",
            "img onerror",
            "a",
        }

    def test_no_page_runs_what_somebody_wrote(self, scene):
        manager, project, dataset = scene
        client = logged_in(manager)
        known = {"slug": project.slug, "dataset_id": dataset.pk}
        seen = 0
        for name, pattern in named_patterns(get_resolver().url_patterns):
            wanted = set(pattern.pattern.converters)
            if name not in PAGES or not wanted <= {"slug", "dataset_id"} or name == "annotation:crowd_done":
                continue
            answer = looked_at(
                lambda name=name, wanted=wanted: client.get(reverse(name, kwargs={key: known[key] for key in wanted}))
            )
            if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
                text = answer.content.decode()
                assert Live(text).found == [], name
                assert "unsafe-inline" not in answer["Content-Security-Policy"]
                seen += "alert(" in text
            assert answer.status_code < 500, name
            assert answer["X-Content-Type-Options"] == "nosniff"
        assert seen >= 6

    def test_an_svg_is_no_image_and_what_hides_behind_one_is_left_behind(self, tmp_path):
        svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
        picture = BytesIO()
        Image.fromarray(np.zeros((2, 2), dtype=np.uint8)).save(picture, "PNG")
        polyglot = picture.getvalue() + svg
        project = make_project(data_kind="image", image_height=2, image_width=2)
        with pytest.raises(InvalidUpload):
            receive_upload(project=project, file=ContentFile(svg, "a.svg"), name="a.svg", mapping={})
        np.save(tmp_path / "pixels.npy", np.asarray(Image.open(BytesIO(polyglot)))[None])
        assert b"svg" in polyglot
        assert b"svg" not in png_of(reader_of(tmp_path / "pixels.npy"), 0)


# --- somebody else's account


class TestTakingAccountsOver:
    @pytest.fixture
    def ann(self):
        ann = User.objects.create_user("ann", email="ann@example.org", password=PASSWORD)
        EmailAddress.objects.create(user=ann, email="ann@example.org", verified=True, primary=True)
        return ann

    def with_a_stolen_session(self, ann):
        client = logged_in(ann)
        client.post(reverse("account_email"), {"action_add": "", "email": "thief@example.org"})
        return EmailAddress.objects.filter(email="thief@example.org").exists()

    def test_the_probe_catches_a_site_that_asks_for_no_password(self, ann, settings):
        settings.ACCOUNT_REAUTHENTICATION_REQUIRED = False
        assert self.with_a_stolen_session(ann)

    def test_a_session_alone_changes_no_address(self, ann):
        assert not self.with_a_stolen_session(ann)

    def test_nobody_takes_an_address_that_is_somebodys(self, ann):
        thief = User.objects.create_user("thief", password=PASSWORD)
        client = Client()
        client.post(reverse("login"), {"login": "thief", "password": PASSWORD})
        client.post(reverse("account_email"), {"action_add": "", "email": "ann@example.org"})
        assert not EmailAddress.objects.filter(user=thief, verified=True).exists()
        assert EmailAddress.objects.get(email="ann@example.org", verified=True).user == ann

    def joined_by_looking(self, address, person):
        logged_in(person).get(address)
        return Membership.objects.filter(user=person).exists()

    def test_the_probe_catches_an_invitation_that_a_picture_could_take(self, plant, ann):
        project = make_project()

        def join(request):
            add_members(project, request.user)
            return HttpResponse("welcome")

        plant(join=join)
        assert self.joined_by_looking("/planted/join/", ann)

    def test_an_invitation_gives_its_role_to_who_takes_it_and_to_nobody_else(self, ann):
        project = make_project()
        _invitation, secret = invitations.create_invitation(
            project=project, owner=project.created_by, role=Role.ANNOTATOR, maximum_uses=5, lifetime=timedelta(days=1)
        )
        address = reverse("annotation:join", args=[secret])
        assert not self.joined_by_looking(address, ann)
        logged_in(ann).post(address, {"role": "manager", "user": project.created_by_id, "email": "x@example.org"})
        assert list(Membership.objects.values_list("user", "role")) == [(ann.pk, "annotator")]
        assert User.objects.get(pk=ann.pk).email == "ann@example.org"


# --- files that run what they hold


class Mark:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


class TestUnpickling:
    @pytest.fixture
    def mark(self, tmp_path):
        return tmp_path / "ran"

    def ran(self, mark, load, content, name, tmp_path):
        mark.unlink(missing_ok=True)
        file = tmp_path / name
        file.write_bytes(content)
        with contextlib.suppress(Exception):  # a refusal is what we hope for; what counts is what ran before it
            load(file)
        return mark.exists()

    def test_the_probe_catches_a_loader_that_unpickles(self, mark, tmp_path):
        content = pickle.dumps(Mark(mark))
        assert self.ran(mark, lambda file: pickle.loads(file.read_bytes()), content, "model.pkl", tmp_path)
        objects = BytesIO()
        np.save(objects, np.array([Mark(mark)], dtype=object), allow_pickle=True)
        assert self.ran(mark, lambda file: np.load(file, allow_pickle=True), objects.getvalue(), "a.npy", tmp_path)

    def test_nothing_of_ours_does(self, mark, tmp_path):
        content = pickle.dumps(Mark(mark))
        objects = BytesIO()
        np.save(objects, np.array([Mark(mark)], dtype=object), allow_pickle=True)
        project = make_project()

        def upload(file):
            mapping = {"text": "text", "has_header": True}
            data = ContentFile(file.read_bytes(), file.name)
            dataset = receive_upload(project=project, file=data, name=file.name, mapping=mapping)
            datasets.import_dataset(job_id=dataset.job_id)

        loaders = {
            "weights.json": artifacts.read_weights,
            "model.skops": lambda file: skops.io.load(file, trusted=[]),
            "manifest.json": lambda file: artifacts.verify_manifest(file.parent),
            "pixels.npy": lambda file: png_of(reader_of(file), 0),
            "pool.parquet": upload,
            "pool.csv": upload,
            "pool.zip": upload,
            "pool.json": upload,
        }
        for name, load in loaders.items():
            for held in (content, objects.getvalue()):
                with transaction.atomic():
                    assert not self.ran(mark, load, held, name, tmp_path), name
                    transaction.set_rollback(True)

    def test_tasks_and_sessions_are_plain_data(self, settings):
        assert list(celery_app.conf.accept_content) == ["json"]
        assert settings.SESSION_SERIALIZER.endswith("JSONSerializer")
