import logging

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver, reverse
from django.urls.resolvers import URLPattern, URLResolver

from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, GateRun, Job, Project, Query, Role
from annotation.people.services import members
from annotation.projects.services import opening
from annotation.work.services import interruptions
from dpal_site.api import api
from dpal_site.operations.logs import WithoutContent
from privacy.gate.kanonymity import KAnonymityGate
from tests.clients import browser_of, program_of
from tests.factories import make_user, receive_upload

pytestmark = pytest.mark.django_db(transaction=True)
SECRET, PEOPLE = "my very own secret", "person"
# Five people say the secret, and nobody else says anything like it; the row count of the upload is no multiple of five.
HIDDEN_TIMES, SHOWN_TIMES = 5, 431


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    monkeypatch.setattr(
        "celery.app.base.Celery.send_task", lambda app, name, *args, **kwargs: calls.append(f"{name} {args} {kwargs}")
    )
    return calls


def crowd(manager: User, **settings: object) -> Project:
    names = {"name": "Voice", "classes": ["music", "other"], "question": "What?", "data_kind": "text"}
    gate_kind = {"gate_kind": "k_anonymity"}
    project = opening.create_project(preset="voice-crowd", owner=manager, **names, **(gate_kind | settings))  # type: ignore[arg-type]
    rows = [f"play jazz,{PEOPLE} {n}" for n in range(SHOWN_TIMES)]
    rows += [f"{SECRET},{PEOPLE} {n}" for n in range(HIDDEN_TIMES)]
    receive_upload(
        project=project,
        file=SimpleUploadedFile("pool.csv", ("text,who\n" + "\n".join(rows)).encode()),
        name="pool.csv",
        mapping={"contributor": "who"},
        uploaded_by=manager,
    )
    datasets.import_dataset(job_id=project.jobs.get(kind="import").pk)
    return project


def addresses(project: Project) -> list[str]:
    dataset = Dataset.objects.get(project=project)
    values = {
        "slug": project.slug,
        "dataset_id": dataset.pk,
        "account_id": project.pool_account_id,
        "job_id": project.jobs.get(kind="gate").pk,
    }
    found = []

    def walk(patterns: list[URLPattern | URLResolver], namespace: str) -> None:
        for pattern in patterns:
            if isinstance(pattern, URLResolver) and pattern.app_name in ("annotation", "learner", *settings.ADDONS):
                walk(pattern.url_patterns, f"{pattern.app_name}:")
            elif isinstance(pattern, URLPattern) and namespace:
                wanted = pattern.pattern.converters
                if wanted.keys() <= values.keys():
                    found.append(reverse(namespace + str(pattern.name), kwargs={name: values[name] for name in wanted}))

    walk(get_resolver().url_patterns, "")
    for path, methods in api.get_openapi_schema()["paths"].items():
        if "get" in methods:
            filled = path
            for name, value in values.items():
                filled = filled.replace("{" + name + "}", str(value))
            if "{" not in filled:
                found.append(filled)
    return found


def clients(project: Project, manager: User) -> dict[str, list[Client]]:
    people = {"manager": manager}
    for role in (Role.ENGINEER, Role.ANNOTATOR):
        people[role] = make_user()
        members.add_member(project=project, user=people[role], role=role)
    found = {}
    for name, person in people.items():
        browser = browser_of(person)
        found[name] = [browser, program_of(person)]
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("settings", [{}, {"gate_kind": "threshold", "gate_epsilon": 1.0}], ids=["sampled", "noisy"])
def test_no_page_no_answer_and_no_log_line_has_a_withheld_text(
    manager: User, settings: dict[str, object], caplog: pytest.LogCaptureFixture, sent: list[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    project = crowd(manager, **settings)
    gates.run_gate(job_id=project.jobs.get(kind="gate").pk)
    assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]
    found = addresses(project)
    for expected in ("/gate/", "/budget/statement.csv", "/api/v1/", "/overview/", "/ledger"):
        assert any(expected in address for address in found), expected
    answered = 0
    for name, (browser, machine) in clients(project, manager).items():
        for address in found:
            response = (machine if address.startswith("/api/") else browser).get(address)
            body = response.getvalue() if response.streaming else response.content  # type: ignore[attr-defined]
            assert response.status_code < 500, address
            answered += response.status_code == 200
            for hidden in (SECRET, "own secret", f"{PEOPLE} 1"):
                assert hidden.encode() not in body, (name, address)
    assert answered > 20
    assert SECRET not in caplog.text
    assert not any(SECRET in call or "play jazz" in call for call in sent)


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.one_in(3)
@pytest.mark.parametrize("method", ["read", "texts", "counted", "conclude"])
def test_an_error_that_quotes_a_record_reaches_nobody(
    manager: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """The worst a library can do: its message holds a text. Job, pages and API name the kind of error alone."""
    project = crowd(manager)

    def quote(*args: object, **kwargs: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(KAnonymityGate, method, quote)
    job = project.jobs.get(kind="gate")
    with pytest.raises(ValueError, match="secret"):
        gates.run_gate(job_id=job.pk)
    job.refresh_from_db()
    assert job.error == interruptions.reason_of(ValueError()) + " What the gate reserved stays charged."
    assert GateRun.objects.get().state == "lost"
    assert SECRET not in caplog.text
    for browser, machine in clients(project, manager).values():
        for address in addresses(project):
            response = (machine if address.startswith("/api/") else browser).get(address)
            body = response.getvalue() if response.streaming else response.content  # type: ignore[attr-defined]
            assert SECRET.encode() not in body, address


def test_what_a_worker_logs_of_an_error_names_its_kind_and_no_record(
    manager: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Celery logs what a task raised, message and traceback; the site's filter leaves the kind."""
    project = crowd(manager)

    def quote(*args: object, **kwargs: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(KAnonymityGate, "conclude", quote)
    with pytest.raises(ValueError, match="secret"):
        gates.run_gate(job_id=project.jobs.get(kind="gate").pk)
    try:
        quote()
    except ValueError as error:
        values = {"name": "run_gate_task", "exc": repr(error), "traceback": SECRET, "args": "[]"}
        logging.getLogger("celery.app.trace").addFilter(hidden := WithoutContent())
        logging.getLogger("celery.app.trace").error("%(name)s raised %(exc)s %(traceback)s", values, exc_info=True)
        logging.getLogger("celery.app.trace").removeFilter(hidden)
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text


def test_the_survey_of_a_manager_is_stored_with_numbers_and_no_text(manager: User) -> None:
    project = crowd(manager)
    dataset = Dataset.objects.get()
    job = gates.start_survey(dataset=dataset, owner=manager)
    gates.run_survey(job_id=job.pk)
    assert SECRET not in str(dataset.survey.frequencies)
    assert Job.objects.get(pk=job.pk).message == "Done."
    for role in (Role.ENGINEER, Role.ANNOTATOR):
        browser, _machine = clients(project, manager)[role]
        address = reverse("annotation:gate", args=[project.slug])
        assert browser.get(address, {"source": dataset.pk}).status_code == 404
