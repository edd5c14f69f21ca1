import pytest

from annotation.choices.classes import FurtherClass
from annotation.errors import InvalidConfiguration
from annotation.projects.services.classes import add_class
from annotation.projects.services.configuring import configure_project
from learner.estimators.logistic import Logistic
from learner.pools.records import refuse_leaving_series
from learner.pools.selectors import training_event
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def add(project, name):
    return add_class(project=project, further=FurtherClass(name), known_beforehand=True, actor=project.created_by)


def test_before_a_series_is_opened_and_without_one_any_number_will_do():
    for project in (learning.open_secret(make_user()), learning.open_trusted(make_user())):
        refuse_leaving_series(project=project, before=["one", "two", "three"])


def test_classes_with_which_trainings_would_leave_their_series_are_refused(monkeypatch):
    # Split over another number of models a tilt's epsilon is larger by its last digit every other time, and a series
    # gives no block more than it has. A fit with a pick leaves more room than that.
    monkeypatch.setattr(Logistic, "picks", False)
    project = learning.open_secret(make_user(), maximum_releases=None, estimator="logistic", pool_epsilon=10.0)
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=1)

    def add_several():
        nonlocal project
        for name in "abcdefgh":
            project = add(project, name)

    with pytest.raises(InvalidConfiguration) as refusal:
        add_several()
    assert f"secret blocks are paid for {len(project.classes)} classes" in refusal.value.broken["name"]
    before = list(project.classes)
    project.refresh_from_db()
    assert project.classes == before
    assert training_event(project).kind == "secret_block"
    # A little less for each training, and there is room for the further class.
    configure_project(project=project, changes={"training_epsilon": 1.999}, actor=project.created_by)
    assert len(add(project, "h").classes) == len(before) + 1
