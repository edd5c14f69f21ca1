import pytest
from django.core.management import call_command

from annotation.choices.presets import PRESETS
from annotation.models import Membership, Role
from learner.models import ModelRelease, Round
from learner.rounds.next_step import Step, project_status
from tests import learning
from tests.factories import add_members, make_user, open_preset

pytestmark = pytest.mark.django_db(transaction=True)

# Epsilons so large that the noise leaves the models useful on so few records; every other default is the preset's.
RICH = {"training_epsilon": 60.0, "pool_epsilon": 400.0, "feature_dimension": 16, "maximum_releases": 3}
ROUNDS = {"round_size": 12, "labels_per_release": 12}
VARIANTS = {"secret sample": {"block_growth": 2}, "private top-c": {"selection": "top_c", **ROUNDS}}
MECHANISMS = {
    "secret sample": ["secret_choice", "secret_block"] * 3,
    "private top-c": ["random_choice", "top_c", "top_c"],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_pool_experts_releases_three_models(variant):
    project = open_preset(make_user(), "pool-experts", classes=learning.CLASSES, **RICH, **VARIANTS[variant])
    assert project.estimator == PRESETS["pool-experts"].defaults["estimator"]
    learning.fill_trusted(project, number=200)
    release = learning.run_to_release(project, make_user(), version=3)
    assert ModelRelease.objects.count() == 3
    assert project_status(project).step == Step.FINISHED
    assert learning.open_reservations(project) == 0
    reserved = [entry.mechanism for entry in learning.entries(project, "reserve")]
    trained = "picked_fit"
    assert [name for name in reserved if name != trained][: len(MECHANISMS[variant])] == MECHANISMS[variant]
    assert reserved.count(trained) == (0 if "secret" in variant else 3)
    assert 0 < release.entry.delta_spent_atto <= project.pool_account.delta_limit_atto
    assert release.evaluations.get().correct >= 40  # of 60; so little noise leaves no fewer
    call_command("audit_ledger")


def test_voice_crowd_releases_three_models_and_asks_again_once_half_was_asked():
    project = open_preset(
        make_user(),
        "voice-crowd",
        classes=learning.CLASSES,
        gate_kind="k_anonymity",
        gate_k=5,
        gate_sampling_rate=0.3,
        gate_epsilon=1.0,
        texts_per_contributor=1,
        pool_delta=0.1,
        overlap=1,
        round_size=20,
        labels_per_release=15,
        feature_dimension=16,
        training_epsilon=60.0,
        labels_epsilon=400.0,
        maximum_releases=3,
        **learning.PAID_EACH_TRAINING,
    )
    learning.fill_crowd(project)
    people = [make_user() for _ in range(3)]
    add_members(project, *people)
    released = 0
    for turn in range(40):
        learning.work_off(project)
        released = ModelRelease.objects.count()
        if released == 3:
            break
        learning.label_everything(project, people[turn % 3])
    assert released == 3
    project.refresh_from_db()
    assert project_status(project).step == Step.FINISHED
    strategies = list(Round.objects.order_by("number").values_list("strategy", flat=True))
    assert strategies[0] == "random"
    assert "repeat_votes" in strategies
    assert learning.open_reservations(project) == 0
    assert learning.entries(project, "commit")[0].mechanism == "k_anonymity_gate"
    assert Membership.objects.filter(project=project, role=Role.ANNOTATOR).count() == 3
    assert ModelRelease.objects.get(version=3).entry.account == project.labels_account
    call_command("audit_ledger")
