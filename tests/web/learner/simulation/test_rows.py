from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from annotation.choices.presets import PRESETS, broken_rules
from annotation.errors import InvalidConfiguration
from annotation.models import Configuration, Job, Project
from annotation.models.history import Action
from annotation.projects.forms.wizard import WizardStep
from annotation.projects.services.configuring import configure_project, limits_of
from annotation.projects.services.opening import create_project
from learner.errors import PlanOutdated
from learner.models.planning import PlanSimulation
from learner.simulation import services as simulation_services
from learner.simulation.plan_setups import setup_of
from learner.simulation.rows import imagined_project, planned_rows, shown_rows, unreached
from learner.simulation.services import fingerprint_of, use_row
from learner.simulation.views import draft_with
from privacy.ledger.models import LedgerEntry
from privacy.ledger.selectors import guarantee
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
RECORDS = 2000
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "secret blocks": ("pool-experts", {}),
    "chance": ("pool-experts", {"selection": "random", "estimator": "logistic", "training_epsilon": 0.3}),
    "top-c": (
        "pool-experts",
        {"selection": "top_c", "selection_epsilon": 0.5, "estimator": "logistic", "training_epsilon": 0.3},
    ),
    "a rho account": (
        "pool-experts",
        {
            "selection": "random",
            "estimator": "logistic_gaussian",
            "training_epsilon": 0.1,
            "training_delta": 1e-7,
            "maximum_releases": 60,
        },
    ),
    "a crowd": ("voice-crowd", {"answers_epsilon": 3.0}),
    "a stream": ("fraud-stream", {}),
    "every record": ("full-information-ogd", {}),
}


@pytest.fixture
def manager() -> User:
    user: User = make_user("manager")
    user.user_permissions.add(Permission.objects.get(codename="add_project"))
    return user


@pytest.fixture
def client(manager: User) -> Client:
    return browser_of(manager)


def opened(manager: User, kind: str = "secret blocks", **changes: Any) -> Project:
    preset, own = KINDS[kind]
    return create_project(
        name="x",
        preset=preset,
        owner=manager,
        data_kind="text",
        classes=["a", "b"],
        question="?",
        **{"text_columns": 16, **own, **changes},
    )


def simulate(project: Project, *, better: int = 1) -> str:
    planned = planned_rows(project, RECORDS)
    points = [{"labels": 9, "mean": 0.6, "low": 0.59, "high": 0.61, "macro_f1": 0.5} for _row in planned.rows]
    points[better] |= {"mean": 0.9, "low": 0.9, "high": 0.9}
    name = fingerprint_of(planned.setup, planned.epsilon)
    curves = {"made_up": [points[0]]}
    result = {"seeds": 5, "curves": curves, "rows": [{"made_up": point} for point in points]}
    PlanSimulation.objects.update_or_create(
        fingerprint=name, defaults={"setup": planned.setup.as_json(), "epsilon": planned.epsilon, "result": result}
    )
    return name


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_becomes_the_settings_it_was_counted_for_and_uses_the_whole_limit(manager: User, kind: str) -> None:
    project = opened(manager, kind)
    before = Configuration.objects.count()
    planned = planned_rows(project, RECORDS)
    assert Configuration.objects.count() == before
    assert (planned.rows[0].changes, planned.why_not) == ({}, "")
    assert len(planned.rows) > 1
    whole = guarantee(project.labels_account or project.pool_account).epsilon_limit
    for row in planned.rows[1:]:
        changed = configure_project(project=opened(manager, kind), changes=row.changes, actor=manager)
        assert broken_rules(changed.settings | limits_of(changed)) == {}
        stored = Project.objects.get(pk=changed.pk)
        assert {name: stored.settings[name] for name in row.changes} == dict(row.changes)
        counted = setup_of(stored, RECORDS)
        assert (
            counted.as_json() | {"drawn_in": row.setup.drawn_in, "falling": row.setup.falling}
        ) == row.setup.as_json()
        assert row.price <= whole
        # The last digits are rounded down; a series of few models has coarse ones.
        assert row.price > 0.99 * whole


def test_what_is_imagined_is_not_stored(manager: User) -> None:
    project = opened(manager)
    imagined = imagined_project(project, {"estimator": "sums"}, kind="zcdp")
    assert (imagined.estimator, imagined.pool_account.filter) == ("sums", "zcdp")
    stored = Project.objects.get(pk=project.pk)
    assert (project.estimator, stored.estimator, stored.pool_account.filter) == ("planned", "planned", "pure")


@pytest.mark.slow
def test_rows_are_simulated_beside_the_settings_that_stand(client: Client, manager: User) -> None:
    project = opened(manager)
    page = reverse("learner:plan", args=[project.slug])
    assert client.get(page, {"records": "300"}).context["compared"] == []
    client.post(page, {"records": "300"})
    simulation_services.run_simulation(job_id=str(Job.objects.get().pk))
    shown = client.get(page, {"records": "300"})
    rows = shown.context["compared"]
    assert len(rows) == len(planned_rows(project, 300).rows)
    assert (rows[0]["words"], rows[0]["usable"]) == ([], False)
    for row in rows:
        assert set(row["points"]) == {"digits", "made_up"}
        assert all(0 <= point["macro_f1"] <= 1 for point in row["points"].values())
    assert shown.content.decode().count("Use this plan</button>") == len(rows) - 1
    assert LedgerEntry.objects.filter(kind="reserve").count() == 0


@pytest.mark.slow
def test_further_rows_are_not_begun_after_the_time_for_them(
    client: Client, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = opened(manager)
    monkeypatch.setattr(simulation_services, "MOST_SECONDS", 0.0)
    page = reverse("learner:plan", args=[project.slug])
    client.post(page, {"records": "300"})
    simulation_services.run_simulation(job_id=str(Job.objects.get().pk))
    shown = client.get(page, {"records": "300"})
    left = len(planned_rows(project, 300).rows) - len(shown.context["compared"])
    assert left > 0
    assert f"{left} further rows were not tried" in shown.content.decode()


def test_using_a_row_is_another_version_with_a_name_in_the_log(client: Client, manager: User) -> None:
    project = opened(manager)
    name = simulate(project, better=2)
    row = planned_rows(project, RECORDS).rows[2]
    page = reverse("learner:plan", args=[project.slug])
    shown = client.get(page, {"records": str(RECORDS)})
    assert [each["number"] for each in shown.context["compared"] if each["better"]] == [2]
    sent = {"records": str(RECORDS), "fingerprint": name, "number": "2"}
    answer = client.post(reverse("learner:use_plan", args=[project.slug]), sent)
    assert answer["Location"] == f"{page}?records={RECORDS}"
    stored = Project.objects.get(pk=project.pk)
    assert {key: stored.settings[key] for key in row.changes} == dict(row.changes)
    assert stored.changes.count() == 1
    assert Action.objects.filter(project=project, route="learner:use_plan", actor="manager").count() == 1
    # Now other settings stand, so the same row is another one.
    again = client.post(reverse("learner:use_plan", args=[project.slug]), sent)
    assert again.status_code == 409
    assert "The settings changed since this was simulated" in again.content.decode()


def test_rows_that_nobody_simulated_are_refused(client: Client, manager: User) -> None:
    project = opened(manager)
    planned = planned_rows(project, RECORDS)
    name = fingerprint_of(planned.setup, planned.epsilon)
    with pytest.raises(PlanOutdated, match="No such row"):
        use_row(project=project, records=RECORDS, fingerprint=name, number=1, actor=manager)
    simulate(project)
    for number in (0, len(planned.rows)):
        with pytest.raises(PlanOutdated, match="No such row"):
            use_row(project=project, records=RECORDS, fingerprint=name, number=number, actor=manager)
    answer = client.post(reverse("learner:use_plan", args=[project.slug]), {"records": "x"})
    assert answer.status_code == 409
    assert project.changes.count() == 0


def test_after_the_first_charge_nothing_is_tried_and_the_page_says_why(client: Client, manager: User) -> None:
    project = learning.open_trusted(manager)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)
    assert planned_rows(project, RECORDS).rows == ()
    page = client.get(reverse("learner:plan", args=[project.slug])).content.decode()
    assert "something was paid for" in page
    assert "Use this plan" not in page
    with pytest.raises(PlanOutdated, match="something was paid for"):
        use_row(project=project, records=RECORDS, fingerprint="0" * 64, number=1, actor=manager)


def test_a_row_of_the_table_says_what_it_changes_in_words(manager: User) -> None:
    project = opened(manager)
    simulation = PlanSimulation.objects.filter(fingerprint=simulate(project)).get()
    planned = planned_rows(project, RECORDS)
    rows = shown_rows(planned, simulation)
    assert rows[1]["words"] == [
        ("Secret sample: rate of the first block", "0.05"),
        ("Secret sample: growth of the blocks", "15"),
    ]
    assert unreached(planned, simulation) == 0
    assert simulation.result is not None
    simulation.result["rows"][1] = {}
    assert [row["cells"] for row in shown_rows(planned, simulation)[1:2]] == [[("made_up", None)]]
    assert shown_rows(planned, None) == []


def typed(client: Client, preset: str, **task: str) -> None:
    asked = {"name": "Invoices", "question": "Fraud?", "classes": "fraud\nhonest", "data_kind": "text", **task}
    assert client.post(reverse("annotation:wizard", args=[preset, WizardStep.TASK]), asked).status_code == 302


@pytest.mark.one_in(3)
@pytest.mark.parametrize("preset", ["pool-experts", "voice-crowd", "fraud-stream"])
def test_a_row_fills_the_steps_of_a_new_project(client: Client, manager: User, preset: str) -> None:
    typed(client, preset)
    address = reverse("learner:draft_plan", args=[preset])
    # As the steps stand, so stands a project that they open.
    project = create_project(
        name="y", preset=preset, owner=manager, data_kind="text", classes=["fraud", "honest"], question="Fraud?"
    )
    name = simulate(project)
    rows = client.get(address, {"records": str(RECORDS)}).context["compared"]
    asked = rows[1:]
    assert asked == [row for row in rows if row["usable"]]
    for row in asked[:2]:
        client.post(reverse("annotation:wizard", args=[preset, WizardStep.CHECK]), {"forget": "yes"})
        typed(client, preset)
        sent = {"records": str(RECORDS), "fingerprint": name, "number": str(row["number"])}
        answer = client.post(reverse("learner:use_draft_plan", args=[preset]), sent)
        assert answer["Location"] == f"{address}?records={RECORDS}"
        client.post(reverse("annotation:wizard", args=[preset, WizardStep.CHECK]))
        made = Project.objects.latest("pk")
        assert made.pk != project.pk
        assert {key: made.settings[key] for key in row["changes"]} == row["changes"]


def test_a_draft_that_changed_or_is_no_project_is_refused(client: Client, manager: User) -> None:
    typed(client, "pool-experts")
    use = reverse("learner:use_draft_plan", args=["pool-experts"])
    sent = {"records": str(RECORDS), "fingerprint": "0" * 64, "number": "1"}
    assert client.post(use, sent).status_code == 409
    limits = {"level": "own", "pool_epsilon": "-1", "pool_delta": "5e-6", "go": "plan"}
    client.post(reverse("annotation:wizard", args=["pool-experts", WizardStep.BUDGET]), limits)
    assert client.post(use, sent).status_code == InvalidConfiguration.status
    assert not Project.objects.exists()


def test_a_planned_price_is_not_typed_so_that_it_follows_the_limit() -> None:
    preset = PRESETS["pool-experts"]
    draft = {"data_kind": "text", "classes": "a\nb", "pool_epsilon": "2", "pool_delta": "5e-6"}
    price = {"training_epsilon": 2.957, "training_delta": 1.428e-5}
    changed = draft_with(preset, draft, {"selection_rate": 0.35, **price})
    assert changed == draft | {"selection_rate": "0.35"}
    dearer = draft_with(preset, draft, {"training_epsilon": 1.5})
    assert dearer == draft | {"training_epsilon": "1.5"}
    assert draft_with(preset, draft, {"selection_rate": 2.0}) is None


def test_programs_read_simulate_and_use_the_same_rows(manager: User) -> None:
    project = opened(manager)
    program = program_of(manager)
    root = f"/api/v1/projects/{project.slug}/plan"
    fresh = program.get(f"{root}/rows?records={RECORDS}").json()
    assert (fresh["state"], fresh["rows"]) == ("none", [])
    begun = program.post(f"{root}/simulation", {"records": RECORDS}, content_type="application/json")
    assert (begun.status_code, begun.json()["state"]) == (202, "waiting")
    name = simulate(project)
    told = program.get(f"{root}/rows?records={RECORDS}").json()
    assert (told["state"], told["fingerprint"], told["rows"][0]["changes"]) == ("done", name, {})
    row = told["rows"][1]
    assert row["better"]
    assert row["tried"] == [
        {"data": "made_up", "labels": 9, "accuracy": 0.9, "worst": 0.9, "best": 0.9, "macro_f1": 0.5}
    ]
    wanted = {"records": RECORDS, "fingerprint": name, "row": row["number"]}
    used = program.post(f"{root}/use", wanted, content_type="application/json")
    assert (used.status_code, used.json()["version"]) == (200, 2)
    document = {key: value for section in used.json()["document"].values() for key, value in section.items()}
    assert {key: document[key] for key in row["changes"]} == row["changes"]
    stale = program.post(f"{root}/use", wanted, content_type="application/json")
    assert (stale.status_code, stale.headers["content-type"]) == (409, "application/problem+json")
