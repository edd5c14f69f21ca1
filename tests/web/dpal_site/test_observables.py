import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.template import engines
from prometheus_client import REGISTRY, CollectorRegistry

from addons.webhooks import events as webhook_events
from addons.webhooks.models import Webhook, WebhookDelivery, WebhookEvent
from annotation.choices.catalogue import CATALOGUE, declaration_of
from annotation.choices.label_types.catalogue import LABEL_TYPES
from annotation.models import Project
from annotation.models.letters import MailKind
from annotation.questions.views.label_parts import keys_page
from annotation.work.reads import Answer, Reads
from dpal_site import observables
from dpal_site.observables import Table, answers, elsewhere, readers_of, reads_of, templates
from dpal_site.operations.logs import FIELDS
from dpal_site.operations.metrics import SiteCollector
from learner.releases.artifacts.settings import KEPT_INSIDE
from tests.counting import begin_over
from tests.emptying import empty_tables
from tests.observing import fields_in, fields_of, included_in, looked_up, written_in
from tests.permission_rows import PAGES as PERMITTED
from tests.permission_rows import ROUTES
from tests.permission_scene import PEOPLE, Scene, as_row
from tests.site_walk import EMPTY, OTHERS, ROLES, WIDGETS, Page, Walk, answer_schemas, schemas, walk_through

pytestmark = pytest.mark.django_db
ROOT = Path(settings.BASE_DIR)
# What templates say to themselves.
LANGUAGE = frozenset({"None", "True", "False"})
LOOPS = "forloop."
SENDING = re.compile(r"import .*(EmailMessage|EmailMultiAlternatives|send_mail)|text/event-stream|[Ww]eb[Ss]ocket")


@pytest.fixture(scope="module")
def walk(django_db_setup: None, django_db_blocker: Any) -> Iterator[Walk]:
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: None)
        yield walk_through(Scene())
        empty_tables()
        begin_over()


@pytest.fixture(scope="module")
def fields() -> Table:
    return {**answers(), "Problem": elsewhere()["Problem"]}


def described_fields() -> set[tuple[str, str]]:
    described = {field for schema in answer_schemas().values() for field in fields_in(schema, schemas())}
    return described | {("Problem", field) for field in schemas()["Problem"]["properties"]}


def undeclared_fields(table: Table) -> list[tuple[str, str]]:
    return sorted((place, name) for place, name in described_fields() if not reads_of(table, place, name))


def forbidden_fields(walk: Walk, table: Table) -> list[tuple[str, str, str, str]]:
    told = answer_schemas()
    return sorted(
        {
            (route, person, place, name)
            for route, person, answer in walk.answers
            for place, name, value in fields_of(answer, told[route], schemas())
            if value not in EMPTY and ROLES[person] not in readers_of(table, [place], name)
        }
    )


def forbidden_names(walk: Walk, table: Table) -> list[tuple[str, str, str]]:
    return sorted(
        {
            (page.name, page.person, name)
            for page in walk.pages
            if page.person in OTHERS
            for name in page.names
            if not is_language(name) and ROLES[page.person] not in readers_of(table, page.templates, name)
        }
    )


def undeclared_names(table: Table) -> list[tuple[str, str]]:
    return sorted(
        (place, name)
        for place in table
        for name in written_in(place)
        if not is_language(name) and not reads_of(table, place, name)
    )


def is_language(name: str) -> bool:
    return name in LANGUAGE or name.startswith(LOOPS)


def without(table: Table, place: str, name: str) -> Table:
    left = {reads: [own for own in names if own != name] for reads, names in table[place].items()}
    return {**table, place: left}


@contextmanager
def as_template(monkeypatch: pytest.MonkeyPatch, name: str, added: str) -> Iterator[None]:
    loaders = engines["django"].engine.template_loaders  # type: ignore[attr-defined]
    for each in [*loaders, *(inner for outer in loaders for inner in getattr(outer, "loaders", []))]:
        if hasattr(each, "get_contents") and not hasattr(each, "loaders"):
            was = each.get_contents

            def planted(origin: Any, was: Any = was) -> str:
                said: str = was(origin)
                return (
                    said.replace("{% endblock %}", f"{added}{{% endblock %}}") if origin.template_name == name else said
                )

            monkeypatch.setattr(each, "get_contents", planted)
    for loader in loaders:
        loader.reset()
    yield
    monkeypatch.undo()
    for loader in loaders:
        loader.reset()


def test_every_page_lets_in_whom_its_row_says(walk: Walk) -> None:
    got = {name: as_row(letters) for name, letters in walk.let_in.items()}
    assert [f"{name} {row}" for name, row in got.items() if row != PERMITTED[name]] == []
    assert got.keys() == PERMITTED.keys()


def test_every_route_of_the_api_lets_in_whom_its_row_says(walk: Walk) -> None:
    """The one scope that a route needs is enough, and all the others together are not."""
    assert {name: ("".join(letters), ROUTES[name][1]) for name, letters in walk.alone.items()} == ROUTES
    refused = ["L"] + ["x"] * (len(PEOPLE) - 1)
    assert walk.lacking == dict.fromkeys(ROUTES, refused)


def test_every_field_of_every_answer_is_declared(fields: Table) -> None:
    assert len(described_fields()) > 90
    assert undeclared_fields(fields) == []


def test_a_class_of_answers_that_declares_nothing_is_found(fields: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new route answers with a class; without `reads=` none of its fields is declared."""

    class UndeclaredOut(Answer):
        number: int
        price: Annotated[float, Reads.LEDGER]

    schema = {"$ref": "#/components/schemas/UndeclaredOut"}
    monkeypatch.setitem(answer_schemas(), "new_route", schema)
    monkeypatch.setitem(schemas(), "UndeclaredOut", UndeclaredOut.model_json_schema())
    declared = {reads: [name] for name, each in UndeclaredOut.field_reads().items() for reads in each}
    assert declared == {Reads.LEDGER: ["price"]}
    assert undeclared_fields({**fields, "UndeclaredOut": declared}) == [("UndeclaredOut", "number")]


def test_nobody_is_answered_what_their_role_may_not_read(walk: Walk, fields: Table) -> None:
    people = {person for _name, person, _answer in walk.answers}
    assert people == set(PEOPLE) - {"anonymous"}
    assert {name for name, person, _answer in walk.answers if person == "engineer"} >= {"list_rounds", "get_model"}
    assert forbidden_fields(walk, fields) == []


def test_settings_in_a_release_are_those_that_managers_choose() -> None:
    """A column of a project that moves by itself would follow the answers into every release's configuration."""
    moving = {"id", "state", "labels_used_through", "labels_used_at"}
    columns = {field.name for field in Project._meta.concrete_fields if not field.is_relation} - KEPT_INSIDE
    chosen = {name for name in columns if declaration_of(name) or CATALOGUE.kind_of(name)}
    stated = {"oracle", "arrival", "data_kind", "preset", "privacy_unit", "question", "classes"}
    stated |= {"merged_classes", "renamed_classes"}
    stated |= {"columns", "image_height", "image_width", "guidelines_version", "second_manager"}
    assert columns - chosen - moving == stated


def test_every_value_in_a_template_is_declared() -> None:
    assert undeclared_names(templates()) == []


def test_templates_declare_nothing_that_is_not_there() -> None:
    stale = [
        (place, pattern)
        for place, declared in templates().items()
        for patterns in declared.values()
        for pattern in patterns
        if not any(observables.covers(pattern, name) for name in written_in(place))
    ]
    assert stale == []


def test_what_a_declared_template_includes_is_declared() -> None:
    places = set(templates())
    included = {inner for place in places for inner in included_in(place)}
    chosen = {template for kind in LABEL_TYPES for template in (kind.widget, keys_page(kind()))}
    assert included - {"asked.kind.widget", "keys_page"} | chosen <= places


def test_no_page_looks_up_for_somebody_what_their_role_may_not_read(walk: Walk) -> None:
    assert {page.person for page in walk.pages} == set(PEOPLE)
    assert forbidden_names(walk, templates()) == []


def test_whatever_others_than_managers_get_is_a_declared_template(walk: Walk) -> None:
    places = set(templates())
    got = {one for page in walk.pages if page.person in OTHERS for one in page.templates if not one.startswith(WIDGETS)}
    assert got - places == set()
    assert {"learner/releases/release.html", "annotation/questions/label.html", "annotation/budget/budget.html"} <= got


def test_every_column_and_path_of_a_file_is_declared(walk: Walk) -> None:
    undeclared = [
        (name, person, value)
        for name, person, values in walk.files
        for value in values or {"content"}
        if ROLES[person] not in readers_of(elsewhere(), [name], value)
    ]
    assert undeclared == []


def test_every_header_is_declared(walk: Walk) -> None:
    assert len(walk.headers) > 15
    assert sorted(name for name in walk.headers if not reads_of(elsewhere(), "headers", name)) == []


def test_messages_to_programs_say_what_is_declared(walk: Walk) -> None:
    project = walk.scene.project
    hook = Webhook.objects.create(
        project=project, url="https://hooks.example/all", events=list(WebhookEvent.values), salt=b"all"
    )
    Webhook.objects.filter(pk=hook.pk).update(created_at="2000-01-01T00:00Z")
    assert webhook_events.record_events()
    told = [json.loads(one.body) for one in WebhookDelivery.objects.filter(webhook=hook)]
    assert {one["event"] for one in told} >= {"release", "round"}
    said = {name for one in told for name in one}
    assert sorted(name for name in said if not reads_of(elsewhere(), "webhook", name)) == []


def test_metrics_and_fields_of_log_lines_are_declared(walk: Walk) -> None:
    registry = CollectorRegistry()
    registry.register(SiteCollector())
    families = {family.name for family in (*registry.collect(), *REGISTRY.collect())}
    assert sorted(name for name in families if not reads_of(elsewhere(), "metrics", name)) == []
    assert sorted(name for name in FIELDS if not reads_of(elsewhere(), "log", name)) == []


def test_nothing_is_sent_but_declared_letters_and_webhooks() -> None:
    """Whoever adds a letter, a socket or a stream of events declares it, and gives it a test here."""
    packages = ("addons", "annotation", "learner", "privacy", "dpal_site")
    sources = [path for name in packages for path in (ROOT / name).rglob("*.py")]
    assert len(sources) > 200
    sending = [path for path in sources if SENDING.search(path.read_text(encoding="utf-8"))]
    assert sending == [ROOT / "annotation" / "people" / "services" / "letters.py"]
    assert sorted(name for name in ("invited", *MailKind.values) if not reads_of(elsewhere(), "mail", name)) == []


@pytest.mark.parametrize(
    ("place", "name"), [("RoundOut", "selected"), ("ModelOut", "beaten_by"), ("MeasuresOut", "recall")]
)
def test_a_field_that_nobody_declared_is_found(fields: Table, place: str, name: str) -> None:
    found = undeclared_fields(without(fields, place, name))
    assert found
    assert {field for _place, field in found} == {name}


def test_a_field_that_reaches_another_role_is_found(walk: Walk, fields: Table) -> None:
    """As if why a round failed were answered to engineers, and as if nobody had declared how many it asked."""
    route, person, rounds = next(one for one in walk.answers if one[:2] == ("list_rounds", "engineer"))
    told = [one | {"error": "No answer leaves a doubt any more."} for one in rounds]
    leaking = replace(walk, answers=[(route, person, told)])
    assert forbidden_fields(leaking, fields) == [("list_rounds", "engineer", "RoundOut", "error")]
    assert ("list_rounds", "engineer", "RoundOut", "selected") in forbidden_fields(
        walk, without(fields, "RoundOut", "selected")
    )


def test_a_value_that_a_template_gains_is_found(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a branch that nobody reaches, and in one that an engineer does."""
    added = "{% if release.state == 'lost' %}{{ release.labels_seen }}{% endif %}{{ release.training_run.finished_at }}"
    with as_template(monkeypatch, "learner/releases/release.html", added):
        planted = {
            ("learner/releases/release.html", f"release.{name}") for name in ("labels_seen", "training_run.finished_at")
        }
        assert set(undeclared_names(templates())) == planted
        engineer = replace(walk, pages=[])
        client = walk.scene.client("engineer")
        with looked_up() as names:
            response = client.get(f"/projects/{walk.scene.project.slug}/releases/1/")
        rendered = frozenset(one.name for one in response.templates if one.name)
        engineer.pages.append(Page("learner:release", "engineer", rendered, frozenset(names)))
        assert forbidden_names(engineer, templates()) == [
            ("learner:release", "engineer", "release.training_run.finished_at")
        ]
    assert undeclared_names(templates()) == []


def test_the_manual_prints_the_table(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("observables", "--check")
    copy = tmp_path / "observables.md"
    manual = observables.DOCUMENT.read_text(encoding="utf-8")
    copy.write_text(manual.replace("`RoundOut`", "`Rounds`"), encoding="utf-8")
    monkeypatch.setattr("dpal_site.management.commands.observables.DOCUMENT", copy)
    with pytest.raises(CommandError, match="another table"):
        call_command("observables", "--check")
    call_command("observables")
    assert copy.read_text(encoding="utf-8") == manual
