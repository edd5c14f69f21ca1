import pytest

from learner.errors import ReasonMissing
from learner.models import Round
from learner.pools.selectors import find_release, latest_release, newest_release, next_strategy
from learner.releases.services import versions
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project(remembered):
    return learning.begin_experts(remembered, released=True)


def test_a_retired_release_is_no_longer_the_latest_and_scores_nothing(project, release):
    with pytest.raises(ReasonMissing):
        versions.retire_release(release=release, reason="  ")
    assert next_strategy(project) == "top_c"
    versions.retire_release(release=release, reason="wrong guideline")
    assert latest_release(project) is newest_release(project) is None
    assert next_strategy(project) == "random"
    learning.work_off(project)
    assert Round.objects.order_by("number").last().model is None


def test_a_release_that_a_constant_beats_is_the_latest_by_a_managers_word_alone(project, release):
    manager = make_user()
    measured = release.evaluations.get()
    assert measured.constant_correct == measured.measures["constant"]["correct"] >= 30
    learning.beaten_on_another_set(release)
    assert latest_release(project) is None
    assert find_release(project, "latest") is None
    assert find_release(project, "1") == newest_release(project) == release
    # What the project itself goes on from is not offered to anybody.
    assert next_strategy(project) == "top_c"
    with pytest.raises(ReasonMissing):
        versions.endorse_release(release=release, reason=" ", actor=manager)
    word = versions.endorse_release(release=release, reason="the test set is old", actor=manager)
    assert versions.endorse_release(release=release, reason="again", actor=manager) == word
    assert latest_release(project) == release
