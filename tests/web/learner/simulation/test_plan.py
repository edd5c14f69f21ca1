import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.models import Job, Project, WorkState
from annotation.projects.services.opening import create_project
from learner.estimators.choice import EstimatorChoice
from learner.estimators.planned import PlannedEstimator
from learner.estimators.randomized_answers import KnownChannel
from learner.estimators.running_sums import OfRunningSums
from learner.models.planning import PlanSimulation
from learner.simulation import curves, estimates, services
from learner.simulation.estimates import recommendation
from learner.simulation.forecast import forecast_of
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import open_preset

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(manager: User) -> Client:
    return browser_of(manager)


def page_of(project: Project) -> str:
    return reverse("learner:plan", args=[project.slug])


def facts_of(page) -> dict[str, str]:
    found = re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", page.content.decode(), re.DOTALL)
    return {" ".join(name.split()): " ".join(value.split()) for name, value in found}


def test_of_secret_blocks_that_grow_the_plan_names_the_first_and_all(client: Client, manager: User) -> None:
    project = open_preset(manager, "pool-experts")
    facts = facts_of(client.get(page_of(project), {"records": 2000}))
    assert (facts["Questions of the next round"], facts["Rounds until the last model"], facts["Labels in all"]) == (
        "200",
        "2",
        "1,600",
    )
    assert "The next training costs" in facts
    assert not {"Questions per round", "One training costs", "Labels of the last model"} & facts.keys()
    plain = open_preset(manager, "pool-experts", selection="random", estimator="logistic", training_epsilon=0.5)
    facts = facts_of(client.get(page_of(plain), {"records": 2000}))
    assert {"Questions per round", "One training costs", "Labels of the last model"} <= facts.keys()


@pytest.mark.parametrize(
    ("preset", "estimator"),
    [("fraud-stream", OfRunningSums), ("voice-crowd", KnownChannel), ("pool-experts", PlannedEstimator)],
)
def test_the_plan_says_why_releases_are_not_compared_with_version_0(
    client: Client, manager: User, preset: str, estimator: type[EstimatorChoice]
) -> None:
    page = client.get(page_of(open_preset(manager, preset)))
    assert ("can be worse than version 0" in page.content.decode()) == (not estimator.picks)
    assert estimator.why_no_pick in page.content.decode()


@pytest.mark.parametrize(
    ("preset", "changes", "releases"),
    [
        # Two blocks of 10 and 70 % cost 2.0 together, the first 0.59.
        ("pool-experts", {}, 2),
        # A smaller limit is planned for as a whole, too; a price that was typed buys fewer.
        ("pool-experts", {"pool_epsilon": 1.2}, 2),
        ("pool-experts", {"pool_epsilon": 1.2, "training_epsilon": 1.7, "training_delta": 1e-6}, 1),
        ("pool-experts", {"block_growth": 2.0, "maximum_releases": 3}, 3),
        ("pool-experts", {"selection": "random", "estimator": "logistic", "training_epsilon": 0.5}, 4),
        # An answers' account of 8 pays for four models of 2.
        ("voice-crowd", {"labels_epsilon": 8.0, **learning.PAID_EACH_TRAINING}, 4),
        ("voice-crowd", {"labels_epsilon": 1.0, **learning.PAID_EACH_TRAINING}, 0),
        # Or for all answers at once, and then for a model after every round.
        ("voice-crowd", {}, 100),
    ],
)
def test_the_plan_counts_what_the_account_pays_for(
    manager: User, preset: str, changes: dict[str, object], releases: int
) -> None:
    project = open_preset(manager, preset, **changes)
    assert forecast_of(project, records=2000).releases == releases


def test_top_c_pays_for_its_rounds_before_its_models(manager: User) -> None:
    top_c = {"selection": "top_c", "selection_epsilon": 0.5, "estimator": "logistic", "training_epsilon": 0.5}
    project = open_preset(manager, "pool-experts", pool_epsilon=3.0, **top_c)
    purchase = forecast_of(project, records=2000)
    assert purchase.choosing >= 0.5
    assert 1 <= purchase.releases <= 5
    assert purchase.choosing + purchase.releases * purchase.training <= 3.0


@pytest.mark.slow
def test_a_simulation_is_made_once_and_drawn_with_its_numbers(client: Client, manager: User) -> None:
    project = open_preset(manager, "pool-experts", feature_dimension=8)
    client.post(page_of(project), {"records": "300"})
    client.post(page_of(project), {"records": "300"})
    simulation = PlanSimulation.objects.get()
    job = Job.objects.get(kind="simulate")
    assert simulation.job == job
    services.run_simulation(job_id=str(job.pk))
    job.refresh_from_db()
    assert job.state == WorkState.DONE
    page = client.get(page_of(project) + "?records=300").content.decode()
    assert "simulated projects with real noise" in page
    simulation.refresh_from_db()
    assert recommendation(simulation.result) in page
    answer = program_of(manager).get(f"/api/v1/projects/{project.slug}/plan/simulation?records=300").json()
    assert (answer["state"], answer["recommendation"]) == ("done", recommendation(simulation.result))
    assert [point["labels"] for point in answer["points"]] == [
        point["labels"] for points in simulation.result["curves"].values() for point in points
    ]
    address = reverse("learner:plan_plot", args=[project.slug, simulation.fingerprint])
    assert address in page
    picture = client.get(address)
    assert picture["Content-Type"] == "image/svg+xml"
    assert b"<title>" in picture.content
    assert b"<desc>" in picture.content
    # Another project under the same settings has it already; other settings have not.
    twin = open_preset(manager, "pool-experts", feature_dimension=8)
    assert "simulated projects with real noise" in client.get(page_of(twin) + "?records=300").content.decode()
    assert "simulated projects with real noise" not in client.get(page_of(twin) + "?records=301").content.decode()


@pytest.mark.parametrize("records", ["0", "x", "1e9"])
def test_an_odd_number_of_records_is_named(client: Client, manager: User, records: str) -> None:
    project = open_preset(manager, "pool-experts")
    assert client.get(page_of(project), {"records": records}).status_code == 422


def test_a_simulation_that_breaks_fails_with_a_reason_and_can_be_asked_for_again(
    client: Client, manager: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_preset(manager, "pool-experts", feature_dimension=8)
    client.post(page_of(project), {"records": "300"})
    first = Job.objects.get(kind="simulate")
    with monkeypatch.context() as patched:
        patched.setattr(curves, "simulated", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            services.run_simulation(job_id=str(first.pk))
    first.refresh_from_db()
    assert first.state == WorkState.FAILED
    assert "ZeroDivisionError" in first.error
    client.post(page_of(project), {"records": "300"})
    assert Job.objects.filter(kind="simulate", state=WorkState.WAITING).count() == 1


def crowd_of_eighteen(manager: User, **settings: object) -> Project:
    names = {"name": "Voice", "question": "What?", "data_kind": "text", "classes": [f"class {n}" for n in range(18)]}
    return create_project(preset="voice-crowd", owner=manager, **names, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said", "unsaid"),
    [
        # Eighteen classes at epsilon 1: a response says the true one in 14 of 100 cases.
        ({"answers_epsilon": 1.0}, "At this epsilon 120 questions are worth", "annotators"),
        ({"answers_epsilon": 4.0}, "", "At this epsilon"),
        (
            {"answers_epsilon": 4.0, "answers_unit": "annotator", "answers_cap": 10},
            "They need at least 36 annotators at 10 answers each.",
            "no annotator",
        ),
        ({"label_randomizer": "not_secret"}, "", "At this epsilon"),
    ],
)
def test_the_plan_says_where_answers_teach_nothing_and_how_many_people_they_take(
    client: Client, manager: User, changes: dict[str, object], said: str, unsaid: str
) -> None:
    project = crowd_of_eighteen(manager, **changes)
    page = " ".join(client.get(page_of(project) + "?records=2000").content.decode().split())
    assert said in page
    assert unsaid not in page
    small = changes.get("answers_unit") == "annotator" or changes.get("answers_epsilon") == 1.0
    assert ("They help from about ε" in page) == small


def test_the_epsilon_that_is_named_is_the_first_that_helps(manager: User) -> None:
    for epsilon in (1.0, 1.5, 1.75, 2.0):
        project = crowd_of_eighteen(manager, answers_epsilon=epsilon)
        hints = estimates.answer_hints(project, 120)
        assert bool(hints) == (epsilon < 1.75), epsilon
        assert not hints or "They help from about ε 1.75" in hints[0]


@pytest.mark.parametrize(("private", "advised"), [(0.60, "larger ε"), (0.895, "Keep this ε"), (0.95, "Keep this ε")])
def test_the_plan_recommends_what_the_noise_leaves_to_gain(private: float, advised: str) -> None:
    found = {kind: {"made_up": [{"labels": 300, "mean": mean}]} for kind, mean in (("curves", private), ("plain", 0.9))}
    assert advised in recommendation(found)
    assert recommendation({"curves": {"made_up": []}, "plain": {}}) == ""
