"""The opening page expects accuracies of the public file, and the project keeps them."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.choices.gates import gate_from
from annotation.choices.presets import PRESETS
from annotation.gates.comparison import synthetic_log
from annotation.models import Job, Project, Record
from annotation.models.imports import OpeningDraft
from learner.models.planning import PlanSimulation
from learner.simulation.forecast import forecast_of
from learner.simulation.public_rows import read_public
from learner.tasks import simulate_plan_task
from privacy.gate.planning import passing
from tests import raw_files
from tests.clients import browser_of
from tests.factories import make_opener
from tests.openings import open_as_shown, sent_by

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage", "reads_here")]


@pytest.fixture
def client() -> Client:
    user = make_opener("opener")
    return browser_of(user)


def bring(client: Client, brought: raw_files.RawFiles) -> str:
    files = {
        "pool": SimpleUploadedFile(brought.pool_name, brought.pool),
        "public": SimpleUploadedFile(brought.public_name, brought.public),
    }
    return str(client.post(reverse("annotation:new_project"), files)["Location"])


def asked_by_page(client: Client, **typed: str) -> str:
    """Do as the opening page does by itself; return the address of the plan."""
    address = reverse("learner:draft_plan", args=[OpeningDraft.objects.get().pk])
    assert client.post(address, typed, headers={"HX-Request": "true"}).status_code == 302
    return address


@pytest.mark.parametrize(("kind", "rows", "named"), [("german", 40, True), ("table", 60, False)])
def test_the_public_rows_of_a_draft_are_read_outside_the_web_thread(
    client: Client, kind: str, rows: int, named: bool
) -> None:
    page = client.get(bring(client, raw_files.KINDS[kind]())).content.decode()
    assert 'hx-trigger="load, every 25s"' in page
    assert "This is being estimated." in page
    asked_by_page(client, records="100")
    simulation = PlanSimulation.objects.get()
    assert simulation.result is None
    found = read_public(simulation)
    assert found is not None
    assert len(found.X) == len(found.y) >= min(30, rows)
    assert set(found.y) == {0, 1}
    assert (found.version_0 is not None) == named
    # Two hundred labels are more than the file has.
    simulation.setup |= {"records": 2000}
    assert read_public(simulation) is None
    # No private row was read, nor a project left behind.
    assert not Record.objects.exists()
    assert not Project.objects.exists()


def test_a_page_that_asks_again_starts_nothing_anew(client: Client) -> None:
    bring(client, raw_files.table())
    asked_by_page(client)
    asked_by_page(client)
    assert Job.objects.count() == PlanSimulation.objects.count() == 1


@pytest.mark.slow
def test_the_numbers_of_the_opening_page_are_those_of_the_project(client: Client) -> None:
    address = bring(client, raw_files.table())
    plan = asked_by_page(client, records="400")
    simulate_plan_task(job_id=str(Job.objects.get().pk))
    simulation = PlanSimulation.objects.get()
    assert set(simulation.result["curves"]) == {"public"}
    assert simulation.result["references"]["public"]["constant"] == 0.5
    points = client.get(plan).context["forecast"].course.points
    # The first model of 40 labels; of the second, 320, the 60 rows say nothing.
    assert len(points) == 1
    assert points[0].labels <= 45
    page = client.get(plan).content.decode()
    assert "Simulated on the public file" in page
    assert "too few rows to simulate the" in page
    assert open_as_shown(client, address).status_code == 302
    assert forecast_of(Project.objects.get()).course.points == points


def test_another_project_never_shows_what_rests_on_this_public_file(client: Client) -> None:
    address = bring(client, raw_files.table())
    asked_by_page(client)
    point = {"labels": 200, "mean": 0.7, "low": 0.6, "high": 0.8, "macro_f1": 0.7}
    PlanSimulation.objects.update(result={"seeds": 5, "curves": {"public": [point]}, "plain": {"public": [point]}})
    assert open_as_shown(client, address).status_code == 302
    assert forecast_of(Project.objects.get()).course.points
    other = bring(client, raw_files.table())
    assert open_as_shown(client, other).status_code == 302
    assert forecast_of(Project.objects.latest("pk")).course.points == ()


def test_a_draft_plans_for_the_rows_of_its_file(client: Client) -> None:
    address = bring(client, raw_files.KINDS["many"]())
    client.get(address)
    plan = reverse("learner:draft_plan", args=[OpeningDraft.objects.get().pk])
    assert client.get(plan).context["forecast"].records == 303
    # Three of them are in the public file, too.
    client.post(address, sent_by(client.get(address)) | {"leave_out": "yes"})
    client.get(address)
    assert client.get(plan).context["forecast"].records == 300


def test_a_crowd_draft_plans_for_no_number_that_follows_from_its_texts(client: Client) -> None:
    address = bring(client, raw_files.KINDS["user names"]())
    shown = sent_by(client.get(address))
    client.post(address, shown | {"preset": "voice-crowd"})
    client.get(address)
    draft = OpeningDraft.objects.get()
    assert draft.files["pool"]["rows"] == 3000
    plan = client.get(reverse("learner:draft_plan", args=[draft.pk])).context["forecast"]
    assert plan.records == round(passing(synthetic_log(), gate_from(PRESETS["voice-crowd"].defaults)).texts)
    address = asked_by_page(client)
    point = {"labels": 20, "mean": 0.7, "low": 0.6, "high": 0.8, "macro_f1": 0.7}
    PlanSimulation.objects.update(result={"seeds": 5, "curves": {"public": [point]}, "plain": {"public": [point]}})
    page = client.get(address).content.decode()
    assert "Simulated on the public file" in page
    assert "labels of the plan" not in page
