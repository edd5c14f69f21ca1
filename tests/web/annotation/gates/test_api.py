import pytest

from annotation.budget import charges
from annotation.gates import services as gates
from annotation.gates.comparison import own_settings
from tests import learning
from tests.factories import make_account, make_records, make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def manager():
    return make_user("boss")


@pytest.fixture
def crowd(manager):
    return learning.open_crowd(manager)


@pytest.fixture
def program(manager):
    return Caller(manager)


def test_gates_are_compared_by_price_and_one_is_chosen(crowd, program):
    at = f"projects/{crowd.slug}/gate"
    plan = program.get(at).json()
    assert (plan["settings"], plan["is_frozen"], plan["job"]) == (own_settings(crowd.settings), False, None)
    assert not plan["is_private"]
    assert plan["epsilon"] == pytest.approx(charges.run_charge(crowd).epsilon)
    assert [offer["is_recommended"] for offer in plan["offers"]].count(True) == 1
    assert {offer["passing"] for offer in plan["offers"]} == {None}
    compared = program.get(at, epsilon=2, delta=1e-6, source="synthetic").json()["offers"]
    assert all(offer["passing"]["texts"] >= 0 for offer in compared)
    (noisy,) = (offer for offer in compared if offer["settings"]["gate_kind"] == "threshold")
    chosen = next(offer for offer in compared if offer is not noisy)["settings"]
    for _again in range(2):
        assert program.post(at, chosen, key="one").status_code == 204
    crowd.refresh_from_db()
    assert program.get(at).json()["settings"]["gate_k"] == chosen["gate_k"]


def test_an_upload_is_counted_for_the_plan(crowd, program, monkeypatch):
    monkeypatch.setattr(gates, "SURVEYED_ROWS", -1)
    dataset = make_records(crowd, ["play jazz", "play jazz"])[0].dataset
    at = f"projects/{crowd.slug}/datasets/{dataset.pk}/survey"
    begun = [program.post(at).json()["id"] for _ in range(2)]
    assert begun[0] == begun[1]
    plan = program.get(f"projects/{crowd.slug}/gate", source=str(dataset.pk)).json()
    assert (plan["job"]["id"], plan["offers"][0]["passing"], plan["is_private"]) == (begun[0], None, True)
    # What was paid for by a training alone is looked at by nobody else.
    start = make_records(crowd, ["play jazz"], role="charged_start", account=make_account())[0].dataset
    assert program.post(f"projects/{crowd.slug}/datasets/{start.pk}/survey").status_code == 404
