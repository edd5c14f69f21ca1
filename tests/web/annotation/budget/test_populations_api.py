import pytest

from annotation.models.limits import LimitRequest, RequestKind
from tests.factories import make_user, open_population
from tests.rest_caller import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return make_user("first"), make_user("second")


@pytest.fixture
def population(people):
    owner, second = people
    return open_population(epsilon_limit=40.0, delta_limit=0.0, owner=owner, second=second)


@pytest.fixture
def programs(people):
    return [Caller(person) for person in people]


def test_a_further_manager_takes_two(people, population, programs):
    make_user("third")
    first, second = programs
    at = f"populations/{population.slug}"
    asked = {"manager": "third", "reason": "she joins"}
    for _again in range(2):
        told = first.post(f"{at}/managers", asked, key="one")
        assert told.status_code == 202
    wish = LimitRequest.objects.get()
    expected = {"request": wish.pk, "kind": "manager", "appointee": "third", "epsilon_limit": None}
    assert (expected | {"requested_by": "first"}).items() <= told.json().items()
    assert first.get(f"{at}/wishes").json() == second.get(f"{at}/wishes").json() == [told.json()]
    own = first.post(f"{at}/wishes/{wish.pk}", {"decision": "approve"})
    assert (own.status_code, own.json()["code"]) == (409, "Another manager has to approve this; you asked for it.")
    assert first.get(f"{at}/managers").json() == ["first", "second"]
    for _again in range(2):
        assert second.post(f"{at}/wishes/{wish.pk}", {"decision": "approve"}, key="one").status_code == 204
    assert first.get(f"{at}/managers").json() == ["first", "second", "third"]
    assert first.get(f"{at}/wishes").json() == []
    late = second.post(f"{at}/wishes/{wish.pk}", {"decision": "refuse"})
    assert (late.status_code, late.json()["code"]) == (409, "This request was decided on, withdrawn, or has expired.")


def test_a_higher_limit_is_a_wish_and_may_be_taken_back(population, programs):
    first, _second = programs
    at = f"populations/{population.slug}"
    first.post(f"{at}/limit", {"epsilon_limit": 50.0, "delta_limit": 0.0, "reason": "more data"})
    (wish,) = first.get(f"{at}/wishes").json()
    assert (wish["kind"], wish["epsilon_limit"], wish["appointee"]) == (RequestKind.LIMIT, 50.0, None)
    assert first.post(f"{at}/wishes/{wish['request']}", {"decision": "refuse"}).status_code == 204
    assert LimitRequest.objects.get().state == "withdrawn"


def test_what_the_page_refuses_is_refused_here(population, programs):
    at = f"populations/{population.slug}/managers"
    nobody = programs[0].post(at, {"manager": "nobody", "reason": "r"})
    assert nobody.status_code == 422
    assert "Nobody who can log in has this name." in nobody.json()["detail"]
    known = programs[0].post(at, {"manager": "second", "reason": "r"})
    assert (known.status_code, known.json()["code"]) == (409, "This person manages the population already.")
    outsider = Caller(make_user("outsider"))
    for path in ("managers", "wishes"):
        assert outsider.get(f"populations/{population.slug}/{path}").status_code == 404
    assert outsider.post(at, {"manager": "outsider", "reason": "r"}).status_code == 404
