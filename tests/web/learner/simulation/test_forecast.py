"""Pages of one project tell the same forecast in every state."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from annotation.projects.services.configuring import configure_project
from learner.models.planning import PlanSimulation
from learner.pools import selectors
from learner.simulation import forecast
from learner.simulation.forecast import Forecast, forecast_of
from learner.simulation.plan_setups import default_records, setup_of
from tests import learning, streaming
from tests.clients import browser_of, program_of
from tests.factories import make_user, open_preset

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


def fresh(owner: User) -> Project:
    return learning.open_trusted(owner)


def one_release(owner: User) -> Project:
    project = learning.open_trusted(owner)
    learning.fill_trusted(project)
    simulated(project)
    learning.run_to_release(project, make_user(), version=1)
    return project


def nearly_spent(owner: User) -> Project:
    project = learning.open_trusted(owner, pool_epsilon=2.6)
    learning.fill_trusted(project)
    simulated(project)
    learning.run_to_release(project, make_user(), version=1)
    return project


def paused(owner: User) -> Project:
    project = one_release(owner)
    Project.objects.filter(pk=project.pk).update(state="paused")
    return project


def several_labels(owner: User) -> Project:
    several = {"question_kind": "several", "labels_per_record": 2, "estimator": "label_sets"}
    return open_preset(owner, "pool-experts", **several)


def stream(owner: User) -> Project:
    return streaming.open_stream(owner)


def crowd(owner: User) -> Project:
    project = learning.open_crowd(owner)
    learning.fill_crowd(project)
    return project


def simulated(project: Project) -> None:
    point = {"labels": 12, "mean": 0.71, "low": 0.66, "high": 0.75, "macro_f1": 0.6}
    found = {"curves": {"made_up": [point]}, "plain": {"made_up": [point | {"mean": 0.83}]}, "seeds": 5}
    setup = setup_of(project, default_records(project))
    references = {"references": {"made_up": {"constant": 0.52}}}
    kept = {"setup": setup.as_json(), "epsilon": 1.0, "result": found | references}
    PlanSimulation.objects.get_or_create(fingerprint="0" * 64, defaults=kept)


def told_on(page: str) -> str:
    found = re.search(r'<div class="forecast">(.*?)</dl>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def pages_of(project: Project) -> list[str]:
    names = ["learner:overview", "annotation:budget", "learner:plan"]
    addresses = [reverse(name, args=[project.slug]) for name in names]
    releases = selectors.releases_of(project)
    return addresses + [reverse("learner:release", args=[project.slug, one.version]) for one in releases]


def numbers_in(text: str) -> list[str]:
    return re.findall(r"\d+\.\d(?= ?%)", text)


@pytest.mark.parametrize("state", [fresh, one_release, nearly_spent, paused, several_labels, stream, crowd])
def test_every_page_and_card_tells_the_same_numbers(manager: User, state: Callable[[User], Project]) -> None:
    project = state(manager)
    project.refresh_from_db()
    simulated(project)
    client: Client = browser_of(manager)
    told = {address: told_on(client.get(address).content.decode()) for address in pages_of(project)}
    # The list of projects asks for each of its cards.
    listed = client.get(reverse("annotation:projects")).content.decode()
    card_address = reverse("learner:card", args=[project.slug])
    assert f'hx-get="{card_address}"' in listed
    told[card_address] = told_on(client.get(card_address).content.decode())
    assert len(set(told.values())) == 1, told
    (words,) = set(told.values())
    found: Forecast = forecast_of(project)
    assert words.startswith(str(found.sentence))
    assert {"71.0", "66.0", "75.0", "83.0", "52.0"} == set(numbers_in(words))
    plan = program_of(manager).get(f"/api/v1/projects/{project.slug}/plan").json()
    assert (plan["releases"], plan["labels"]) == (found.releases, found.labels)
    for release in selectors.releases_of(project):
        with default_storage.open(f"{release.folder}/card.md") as file:
            text = file.read().decode()
        _head, found, section = text.partition("Expected, simulated on ")
        assert found
        assert set(numbers_in(section.partition("\n#")[0])) == set(numbers_in(words))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("state", [fresh, one_release, nearly_spent, several_labels, stream, crowd])
def test_a_forecast_is_computed_once(
    manager: User, state: Callable[[User], Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = state(manager)
    project.refresh_from_db()
    kept = forecast_of(project)
    computed = forecast.computed_forecast
    assert kept == computed(project)
    monkeypatch.setattr(forecast, "computed_forecast", pytest.fail)
    assert forecast_of(project) == kept


def dearer(project: Project) -> None:
    configure_project(project=project, changes={"labels_per_release": 5}, actor=project.created_by)


@pytest.mark.parametrize(
    "change",
    [
        learning.fill_trusted,
        simulated,
        dearer,
        lambda project: learning.run_to_release(project, make_user(), version=1),
    ],
)
def test_a_forecast_follows_its_inputs(manager: User, change: Callable[[Project], object]) -> None:
    project = learning.open_trusted(manager)
    if change not in (learning.fill_trusted, simulated):
        learning.fill_trusted(project)
    before = forecast_of(project)
    change(project)
    project = Project.objects.select_related("pool_account").get(pk=project.pk)
    assert forecast_of(project) == forecast.computed_forecast(project) != before


def test_a_spent_budget_says_so_everywhere_and_can_still_be_simulated(manager: User) -> None:
    project = nearly_spent(manager)
    found = forecast_of(project)
    assert found.releases == 0
    assert "too small" in found.sentence
    # The estimate is of the whole plan, so it needs no rest of the budget.
    assert found.can_be_simulated
    PlanSimulation.objects.all().delete()
    page = browser_of(manager).get(reverse("learner:release", args=[project.slug, 1])).content.decode()
    assert "Simulate" in page
