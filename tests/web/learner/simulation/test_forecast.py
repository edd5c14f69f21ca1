"""Pages of one project tell the same forecast in every state."""

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from annotation.models import Project
from learner.models.planning import PlanSimulation
from learner.pools import selectors
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
    learning.run_to_release(project, make_user(), version=1)
    return project


def nearly_spent(owner: User) -> Project:
    project = learning.open_trusted(owner, pool_epsilon=2.6)
    learning.fill_trusted(project)
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
    PlanSimulation.objects.create(fingerprint="0" * 64, setup=setup.as_json(), epsilon=1.0, result=found | references)


def told_on(page: str) -> str:
    found = re.search(r'<div class="forecast">(.*?)</dl>', page, re.DOTALL)
    assert found is not None
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def pages_of(project: Project) -> list[str]:
    names = ["learner:overview", "annotation:budget", "learner:plan"]
    addresses = [reverse(name, args=[project.slug]) for name in names]
    releases = selectors.releases_of(project)
    return addresses + [reverse("learner:release", args=[project.slug, one.version]) for one in releases]


@pytest.mark.parametrize("state", [fresh, one_release, nearly_spent, paused, several_labels, stream, crowd])
def test_every_page_tells_the_same_numbers(manager: User, state: Callable[[User], Project]) -> None:
    project = state(manager)
    project.refresh_from_db()
    simulated(project)
    client: Client = browser_of(manager)
    told = {address: told_on(client.get(address).content.decode()) for address in pages_of(project)}
    assert len(set(told.values())) == 1, told
    (words,) = set(told.values())
    forecast: Forecast = forecast_of(project)
    assert words.startswith(str(forecast.sentence))
    for number in ("71.0", "66.0", "75.0", "83.0", "52.0"):
        assert number in words
    plan = program_of(manager).get(f"/api/v1/projects/{project.slug}/plan").json()
    assert (plan["releases"], plan["labels"]) == (forecast.releases, forecast.labels)


def test_a_spent_budget_says_so_everywhere_and_can_still_be_simulated(manager: User) -> None:
    project = nearly_spent(manager)
    forecast = forecast_of(project)
    assert forecast.releases == 0
    assert "too small" in forecast.sentence
    # The estimate is of the whole plan, so it needs no rest of the budget.
    assert forecast.can_be_simulated
    page = browser_of(manager).get(reverse("learner:release", args=[project.slug, 1])).content.decode()
    assert "Estimate the accuracy, with and without privacy" in page
