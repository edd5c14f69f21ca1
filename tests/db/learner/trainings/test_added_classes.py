import numpy as np
import pytest
from django.urls import reverse

from annotation.choices.classes import FurtherClass
from annotation.models import Consensus, Membership, Role
from annotation.projects.services.classes import add_class
from annotation.questions.services import labels, queue
from learner.models import Evaluation, ModelRelease
from learner.models.sums import ReleasedSums
from learner.pools.selectors import training_event
from learner.releases import evaluations
from learner.rounds.services import selection
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
CONSTANT = 0.3
# So little noise that counts can be read off the sums.
QUIET = {"training_epsilon": 150.0, "training_delta": 1e-6, "pool_epsilon": 650.0, "pool_delta": 1e-3}
SECRET = [
    {"estimator": "sums", "features": "planned", "text_columns": 16},
    {"estimator": "planned", "features": "planned", "text_columns": 16},
    {"estimator": "softmax_steps", "features": "planned", "text_columns": 16},
]
OPEN = [{"estimator": "logistic", "training_delta": 0.0}, {"estimator": "sums"}]


def add(project, name="spare part"):
    return add_class(project=project, further=FurtherClass(name), known_beforehand=True, actor=project.created_by)


def label_all(project, *, most=10**9):
    """Answer what is open; of the classes in turn, so that the further one has answers."""
    person = make_user()
    Membership.objects.get_or_create(project=project, user=person, role=Role.ANNOTATOR)
    answered = 0
    while answered < most and (held := queue.claim_next(project=project, user=person)) is not None:
        labels.submit_label(assignment=held, choice=answered % len(project.classes))
        answered += 1
    return answered


def pages_of(project):
    client = browser_of(project.created_by)
    for version in (1, 2):
        page = client.get(reverse("learner:release", args=[project.slug, version]))
        assert page.status_code == 200
        yield page.content.decode()


def checked(project):
    rows = [[text, "spare part" if place % 2 else "tool"] for place, text in enumerate(learning.sentences(10, seed=4))]
    learning.upload(project, rows, ["text", "label"], role="public_test")
    for release in ModelRelease.objects.all():
        evaluations.evaluate_release(release=release)
    first, second = ModelRelease.objects.order_by("version")
    assert first.weights["classes"] == ["fruit", "tool"]
    assert second.weights["classes"] == ["fruit", "tool", "spare part"]
    assert Evaluation.objects.count() == 4
    late = first.evaluations.get(dataset__project=project, examples=10)
    # Half of the examples are of a class that the first never names.
    assert [sum(row) for row in late.measures["confusion"]] == [0, 5, 5]
    assert all(row[2] == 0 for row in late.measures["confusion"])
    _one, other = pages_of(project)
    assert "spare part" in other
    return first, second


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chosen", SECRET, ids=lambda each: each["estimator"])
def test_the_next_secret_block_learns_one_class_more_within_its_series(chosen):
    """False alarm: < 1e-12; 200 coins of 20 % come up five times at most."""
    project = learning.open_secret(make_user(), maximum_releases=None, **(QUIET | chosen))
    learning.fill_trusted(project, number=200)
    learning.run_to_release(project, make_user(), version=1)
    before = training_event(project)
    project = add(project)
    after = training_event(project)
    assert (before.kind, after.kind) == ("secret_block", "secret_block")
    assert after.cost().epsilon == pytest.approx(before.cost().epsilon, rel=1e-6)
    learning.work_off(project)
    n = label_all(project)
    assert n > 5
    selection.close_block(project=project)
    learning.work_off(project, version=2)
    checked(project)


def test_sums_of_blocks_before_have_none_of_the_further_class():
    """False alarm: < 1e-10; 200 coins of 20 % come up eight times at most, or noise of 0.03 exceeds 3."""
    project = learning.open_secret(make_user(), maximum_releases=None, block_growth=1, **(QUIET | SECRET[0]))
    learning.fill_trusted(project, number=200)
    learning.run_to_release(project, make_user(), version=1)
    project = add(project)
    learning.work_off(project)
    label_all(project)
    selection.close_block(project=project)
    learning.work_off(project, version=2)
    second = ReleasedSums.objects.get(run__version=2)
    counts = np.frombuffer(bytes(second.class_sums)).reshape(-1, second.dimension)[:, -1] / CONSTANT
    truth = np.bincount(Consensus.objects.values_list("choice", flat=True), minlength=3)
    assert counts == pytest.approx(truth, abs=3)
    settled = Consensus.objects.filter(query__round_number=2)
    assert counts[2] == pytest.approx(settled.filter(choice=2).count(), abs=3)
    assert counts.sum() > settled.count() + 5


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chosen", OPEN, ids=lambda each: each["estimator"])
def test_the_next_training_on_all_answers_learns_one_class_more(chosen):
    project = learning.open_trusted(
        make_user(), selection="random", maximum_releases=None, round_size=20, labels_per_release=20, **(QUIET | chosen)
    )
    learning.fill_trusted(project, number=80)
    learning.run_to_release(project, make_user(), version=1)
    price = training_event(project).cost()
    project = add(project)
    assert training_event(project).cost().epsilon == pytest.approx(price.epsilon, rel=1e-6)
    learning.work_off(project)
    label_all(project)
    learning.work_off(project, version=2)
    checked(project)
