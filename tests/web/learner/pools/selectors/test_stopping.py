import html
import re

import pytest

from annotation.models import ProjectState
from annotation.work.services.tokens import Scope
from learner.models import StoppingAdvice
from tests import learning
from tests.clients import browser_of, program_of
from tests.db.learner.answers.test_randomization import open_randomized, reach
from tests.factories import add_members, make_annotators, make_user

PAUSE = ">Pause asking</button>"
pytestmark = pytest.mark.django_db(transaction=True)


def text_of(response):
    return " ".join(html.unescape(re.sub("<[^>]*>", "", response.content.decode())).split())


@pytest.fixture
def crowd():
    project = open_randomized(labels_per_release=4, round_size=4)
    learning.fill_crowd(project)
    make_annotators(project, 3)
    return project


def put(release, **values):
    told = {"models_compared": 4, "agreement": 0.99, "threshold": 0.975, "moved": 0.01, "stop": True}
    return StoppingAdvice.objects.create(release=release, **(told | values))


def test_where_it_is_enough_the_overview_says_so_and_a_manager_pauses(crowd):
    release = reach(crowd, 1)
    put(release)
    client = browser_of(crowd.created_by)
    page = client.get(f"/projects/{crowd.slug}/overview/")
    assert "More answers no longer help" in text_of(page)
    assert PAUSE in page.content.decode()
    assert "More answers no longer help" in text_of(client.get(f"/projects/{crowd.slug}/dashboard/"))
    german = text_of(client.get(f"/projects/{crowd.slug}/overview/", headers={"accept-language": "de"}))
    assert "Mehr Antworten helfen nicht mehr" in german
    client.post(f"/projects/{crowd.slug}/state/", {"state": "paused"})
    crowd.refresh_from_db()
    assert crowd.state == ProjectState.PAUSED
    assert PAUSE not in client.get(f"/projects/{crowd.slug}/overview/").content.decode()


def test_the_interface_says_it_with_its_numbers_as_a_code_with_parameters(crowd):
    release = reach(crowd, 1)
    engineer = make_user()
    add_members(crowd, engineer, role="engineer")
    client = program_of(engineer, Scope.MODELS_READ)
    url = f"/api/v1/projects/{crowd.slug}/models/1"
    assert client.get(url).json()["stopping"] is None
    put(release)
    told = client.get(url).json()["stopping"]
    assert {name: told[name] for name in ("stop", "agreement", "threshold", "moved", "models_compared")} == {
        "stop": True,
        "agreement": 0.99,
        "threshold": 0.975,
        "moved": 0.01,
        "models_compared": 4,
    }
    assert told["said"].startswith("More answers no longer help: the last 4 versions")
    assert told["said_as_code"]["parameters"] == {"models": 4, "agreement": 0.99, "threshold": 0.975}
    assert browser_of(engineer).post(f"/projects/{crowd.slug}/state/", {"state": "paused"}).status_code in (403, 404)
    dashboard = browser_of(engineer).get(f"/projects/{crowd.slug}/dashboard/")
    assert "More answers no longer help" in text_of(dashboard)
    assert PAUSE not in dashboard.content.decode()
