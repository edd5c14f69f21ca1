from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from annotation.errors import InvalidConfiguration
from annotation.models.configurations import remember
from learner.errors import UnknownChoice
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.catalogue import words_for
from learner.models import ModelRelease, TrainingRun
from learner.pools.selectors import training_event
from learner.releases import storage
from learner.rounds.services import training
from privacy.accounting.event import event_from_json
from tests import learning
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        ("logistic_output", "output_perturbation"),
        ("logistic", "objective_perturbation"),
    ],
)
def test_a_release_is_charged_what_its_estimator_says(estimator, kind):
    project = learning.open_trusted(make_user(), selection="random", estimator=estimator)
    learning.fill_trusted(project)
    planned = training_event(project)
    release = learning.run_to_release(project, make_user(), version=1)
    event = event_from_json(release.entry.parent.event)
    assert event.kind == kind
    assert event == planned
    # What comes next starts from this release, and is checked against it for the same price.
    assert training_event(project).inner.kind == kind
    assert release.estimator == estimator
    assert release.entry.delta_atto == 0
    with storage.open_file(release=release, name="card.md") as file:
        assert words_for(estimator) in file.read().decode()
    call_command("audit_ledger")


def test_a_gaussian_release_of_a_secret_sample_is_amplified_in_both():
    project = learning.open_secret(
        make_user(), estimator="softmax_steps", training_delta=1e-6, pool_delta=1e-5, pool_epsilon=5.0
    )
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    event = event_from_json(release.entry.parent.event)
    assert event.inner.cost().delta > 0
    # The first block of a series pays the deltas of all of them.
    asked = sum(event.series.rates)
    assert len(event.series.rates) > 1
    assert release.entry.delta_atto == pytest.approx(asked * event.inner.cost().delta * 1e18, rel=1e-6)


def test_a_twin_without_noise_is_refused_wherever_it_could_slip_in(monkeypatch):
    """By name when a project opens, is stored or builds its estimator; put in its place, when it would be released."""
    with pytest.raises(InvalidConfiguration, match="estimator"):
        learning.open_trusted(make_user(), estimator="logistic_baseline")
    with pytest.raises(IntegrityError, match="no choice declares this value of training"), transaction.atomic():
        make_project(estimator="logistic_baseline")
    unstored = make_project()
    unstored.configuration_id = uuid4()
    remember(unstored.configuration_id, {"training": {"estimator": "logistic_baseline"}})
    with pytest.raises(UnknownChoice, match="No estimator is called"):
        training_event(unstored)
    project = learning.open_trusted(make_user(), selection="random")
    learning.fill_trusted(project)
    real = training.release_estimator_of

    def without_noise(*args, **kwargs):
        twin = LogisticRegressionBaseline(1.0, classes=[0, 1])
        twin.event_for = real(*args, **kwargs).event_for
        return twin

    monkeypatch.setattr(training, "release_estimator_of", without_noise)
    with pytest.raises(AssertionError, match="was not released"):
        learning.run_to_release(project, make_user(), version=1)
    assert not ModelRelease.objects.exists()
    assert "has no guarantee" in TrainingRun.objects.order_by("created_at").first().error
