import pytest

from annotation.choices.classes import FurtherClass
from annotation.errors import InvalidConfiguration
from annotation.models import Label
from annotation.projects.services.classes import add_class, merge_class, rename_class, take_back_merge
from annotation.projects.services.configuring import configure_project
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.pools.configuration import learned_classes, models_of_classes
from learner.pools.records import labelled_examples
from learner.pools.selectors import training_event
from learner.releases import evaluations
from learner.rounds.services import selection
from tests import learning
from tests.db.learner.trainings.test_added_classes import OPEN, QUIET, SECRET, label_all
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
CLASSES = ["fruit", "tool", "berry"]


def merge(project, name="berry", into="fruit"):
    return merge_class(project=project, name=name, into=into, known_beforehand=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chosen", OPEN, ids=lambda each: each["estimator"])
def test_the_next_training_on_all_answers_learns_one_class_fewer(chosen):
    project = learning.open_trusted(
        make_user(),
        selection="random",
        maximum_releases=None,
        round_size=20,
        labels_per_release=20,
        classes=CLASSES,
        **(QUIET | chosen),
    )
    learning.fill_trusted(project, number=80)
    learning.work_off(project)
    label_all(project)
    learning.work_off(project, version=1)
    given = list(Label.objects.order_by("pk").values_list("choice", flat=True))
    price = training_event(project).cost()
    project = merge(project)
    assert training_event(project).cost().epsilon == pytest.approx(price.epsilon, rel=1e-6)
    examples, numbers = labelled_examples(project, last_consensus_id=10**9)
    assert len(examples.ids) == len(given)
    assert sorted(numbers) == sorted(choice % 2 for choice in given)
    learning.work_off(project)
    label_all(project)
    learning.work_off(project, version=2)
    first, second = ModelRelease.objects.order_by("version")
    assert (first.weights["classes"], second.weights["classes"]) == (CLASSES, ["fruit", "tool"])
    assert list(Label.objects.order_by("pk").values_list("choice", flat=True))[: len(given)] == given
    _measured_where_both_count_as_one(project, first, second)
    with pytest.raises(InvalidConfiguration, match="trained with this merge"):
        take_back_merge(project=project, name="berry")
    again = add_class(
        project=project, further=FurtherClass("spare part"), known_beforehand=True, actor=project.created_by
    )
    assert learned_classes(again) == ("fruit", "tool", "spare part")
    learning.work_off(again)
    label_all(again)
    learning.work_off(again, version=3)
    assert ModelRelease.objects.get(version=3).weights["classes"] == ["fruit", "tool", "spare part"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chosen", OPEN, ids=lambda each: each["estimator"])
def test_a_renamed_class_goes_on_from_the_model_that_knows_its_earlier_name(chosen):
    options = QUIET | chosen | {"selection": "random", "maximum_releases": None}
    project = learning.open_trusted(
        make_user(), round_size=20, labels_per_release=20, classes=["fruit", "tool"], **options
    )
    learning.fill_trusted(project, number=80)
    learning.work_off(project)
    label_all(project)
    learning.work_off(project, version=1)
    for name, to in (("fruit", "plant"), ("plant", "food")):
        project = rename_class(project=project, name=name, to=to, known_beforehand=True, actor=project.created_by)
    learning.work_off(project)
    label_all(project)
    learning.work_off(project, version=2)
    first, second = ModelRelease.objects.order_by("version")
    assert (first.weights["classes"], second.weights["classes"]) == (["fruit", "tool"], ["food", "tool"])
    assert [one.version for one, _model in models_of_classes(ModelRelease.objects, project, ("food", "tool"))] == [2, 1]


def _measured_where_both_count_as_one(project, *found):
    rows = [[text, CLASSES[2 * (place % 2)]] for place, text in enumerate(learning.sentences(10, seed=4))]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    for release in found:
        evaluations.evaluate_release(release=release)
        (measured,) = release.evaluations.filter(examples=10)
        assert [sum(row) for row in measured.measures["confusion"]] == [10, 0, 0]
        assert all(row[2] == 0 for row in measured.measures["confusion"])
        outcomes = evaluations.public_outcomes(LinearModel.from_json(release.weights), [measured.dataset])
        assert set(outcomes.truth) == {0}


def open_secret(chosen):
    project = learning.open_secret(make_user(), maximum_releases=None, classes=CLASSES, **(QUIET | chosen))
    learning.fill_trusted(project, number=200)
    return project


def run_block(project, version):
    learning.work_off(project)
    assert label_all(project) > 10
    selection.close_block(project=project)
    learning.work_off(project, version=version)


@pytest.mark.slow
def test_a_secret_block_without_running_sums_goes_on_within_its_series():
    project = open_secret(SECRET[2])
    run_block(project, 1)
    before = training_event(project)
    # For two classes a training costs two billionths more than the series gives its blocks.
    with pytest.raises(InvalidConfiguration, match="paid for 3 classes"):
        merge(project)
    project.refresh_from_db()
    configure_project(project=project, changes={"training_epsilon": 149.9999}, actor=project.created_by)
    project = merge(project)
    after = training_event(project)
    assert (before.kind, after.kind) == ("secret_block", "secret_block")
    assert after.cost().epsilon == pytest.approx(before.cost().epsilon, rel=1e-6)
    run_block(project, 2)
    assert ModelRelease.objects.get(version=2).weights["classes"] == ["fruit", "tool"]


def test_noisy_sums_with_a_column_for_each_class_stay_apart():
    project = open_secret(SECRET[0])
    learning.work_off(project)
    label_all(project, most=3)
    # Before the first sums nothing rests on their columns.
    merged = merge(project)
    project = take_back_merge(project=merged, name="berry")
    label_all(project)
    selection.close_block(project=project)
    learning.work_off(project, version=1)
    with pytest.raises(InvalidConfiguration, match="classes cannot be merged after") as refusal:
        merge(project)
    assert list(refusal.value.broken) == ["name"]
    project.refresh_from_db()
    assert project.merged_classes == {}
