import pytest

from annotation.models import Role
from learner.models import Round, TrainingRun
from learner.pools.selectors import training_price
from tests import learning
from tests.factories import add_members, make_user
from tests.programs import Program

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_block_is_closed_before_its_time(manager):
    project = learning.open_secret(manager)
    ask = Program(manager, project)
    refused = ask("POST", "rounds/block/close", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "There is no open block to close.")
    learning.fill_trusted(project)
    learning.work_off(project)
    before = Round.objects.get().closes_at
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", "rounds/block/close", {}).status_code == 403
    price = training_price(project)
    dear = ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon * 0.9})
    assert (dear.status_code, dear.json()["parameters"]) == (422, {"epsilon": pytest.approx(price.epsilon, rel=1e-5)})
    assert Round.objects.get().closes_at == before
    closed = ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon}, key="k").json()
    assert (closed["block"], closed["epsilon"], closed["delta"]) == (1, price.epsilon, price.delta)
    assert Round.objects.get().closes_at < before
    assert ask("POST", "rounds/block/close", {"most_epsilon": price.epsilon}, key="k").json() == closed


def test_a_model_is_trained_on_few_questions_at_a_word(manager):
    project = learning.open_trusted(manager, selection="random", round_size=50, labels_per_release=50)
    learning.fill_trusted(project, number=20)
    learning.work_off(project)
    ask = Program(manager, project)
    refused = ask("POST", "trainings", {})
    assert refused.status_code == 409
    assert "No training is waiting for a" in refused.json()["code"]
    learning.label_everything(project, make_user())
    learning.work_off(project)
    (act,) = (one for one in ask("GET", "next-step").json()["acts"] if one["kind"] == "train_on_few")
    assert ask("POST", "trainings", {"most_epsilon": act["epsilon"] / 2}).status_code == 422
    engineer = make_user()
    add_members(project, engineer, role=Role.ENGINEER)
    assert Program(engineer, project)("POST", "trainings", {}).status_code == 403
    assert not TrainingRun.objects.exists()
    started = ask("POST", "trainings", {"most_epsilon": act["epsilon"]})
    assert started.status_code == 202
    assert started.json() == {"version": 1, "state": "waiting", "epsilon": act["epsilon"], "delta": act["delta"]}
    assert TrainingRun.objects.get().labels_used == 20
    assert ask("POST", "trainings", {}).status_code == 409
