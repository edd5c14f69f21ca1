import numpy as np
import pytest
from django.db import IntegrityError, transaction

from annotation.errors import InvalidConfiguration
from annotation.models import Membership, Role
from annotation.questions.services import labels, queue
from learner.models import FeatureMatrix, FeatureProjection
from learner.pools import features
from learner.pools.configuration import featurizer_of, finding_of
from learner.simulation.selectors import plan_forecast
from privacy.accounting.event import event_from_json
from privacy.errors import BudgetExceeded
from privacy.ledger import audit
from privacy.ledger.counter import site_counter
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_user, write_settings

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_storage")]


@pytest.fixture
def project():
    opened = learning.open_images(make_user(), feature_dimension=3, features="principal", features_epsilon=0.5)
    upload(opened, seed=1)
    return opened


def upload(project, *, seed, role="pool"):
    images = np.random.default_rng(seed).integers(0, 256, size=(40, 16))
    rows = [[str(value) for value in image] for image in images]
    return learning.upload(project, rows, [f"pixel_{n}" for n in range(16)], role=role)


def test_the_pool_pays_once_before_the_directions_exist(project):
    assert featurizer_of(project).components is None
    for dataset in project.datasets.all():
        assert features.open_features(dataset).shape == (40, 3)
    later = features.open_features(upload(project, seed=2))
    assert later.shape == (40, 3)
    found = FeatureProjection.objects.get()
    (commit,) = learning.entries(project, "commit")
    assert found.entry == commit
    event = event_from_json(commit.parent.event)
    assert event == finding_of(project).event
    assert commit.epsilon_nano == pytest.approx(0.5e9, rel=1e-6)
    assert commit.epsilon_nano <= 0.5e9
    assert learning.open_reservations(project) == 0
    assert {matrix.version for matrix in FeatureMatrix.objects.all()} == {featurizer_of(project).version}
    (verdict,) = audit.audit_accounts(scope=project.pool_account.scope, marks=site_counter().marks())
    assert (verdict.entries, verdict.differing) == (3, 0)  # the grant, the reservation, the commit


def test_every_release_descends_from_the_directions(project):
    write_settings(
        project,
        selection="random",
        round_size=10,
        labels_per_release=10,
        training_epsilon=0.4,
        training_delta=1e-6,
        maximum_releases=2,
    )
    project.refresh_from_db()
    release = run_to_release(project, version=2)
    entry = FeatureProjection.objects.get().entry
    assert entry in release.lineage.all()
    assert release.features["parameters"]["components"] == FeatureProjection.objects.get().components
    assert len(learning.entries(project, "reserve")) == 1 + 2 + 2  # the directions, two rounds, two trainings


def run_to_release(project, *, version):
    annotator = make_user()
    for _ in range(4 * version):
        learning.work_off(project, version=version)
        if released := project.releases.filter(version=version).first():
            return released
        answer_everything(project, annotator)
    raise AssertionError(f"version {version} was not released")


def answer_everything(project, annotator):
    Membership.objects.get_or_create(project=project, user=annotator, role=Role.ANNOTATOR)
    while (assignment := queue.claim_next(project=project, user=annotator)) is not None:
        labels.submit_label(assignment=assignment, choice=assignment.query_id % 2)


def test_a_dead_attempt_stays_charged_and_the_next_pays_anew(project, monkeypatch):
    die_at(monkeypatch, "projection_found", features)
    with pytest.raises(Killed):
        features.ready_featurizer(project)
    assert learning.open_reservations(project) == 1
    monkeypatch.undo()
    features.ready_featurizer(project)
    assert learning.open_reservations(project) == 0
    assert [entry.kind for entry in project.pool_account.entries.filter(subject="features").order_by("sequence")] == [
        "reserve",
        "charge",
        "reserve",
        "commit",
    ]


def test_an_account_that_cannot_pay_lets_nothing_be_read(project, monkeypatch):
    def read(dataset):
        raise AssertionError("an image was read")

    monkeypatch.setattr(features, "pixel_batches", read)
    write_settings(project, features_epsilon=50.0)
    project.refresh_from_db()
    with pytest.raises(BudgetExceeded):
        features.ready_featurizer(project)
    assert not FeatureProjection.objects.exists()


def test_the_forecast_counts_the_directions_until_they_are_paid(project):
    write_settings(
        project,
        selection="random",
        selection_rate=None,
        round_size=5,
        labels_per_release=5,
        training_epsilon=0.5,
        training_delta=1e-6,
    )
    project.refresh_from_db()
    before = plan_forecast(project)
    features.ready_featurizer(project)
    after = plan_forecast(project)
    assert before.releases == after.releases == 3  # (2 - 0.5) / 0.5


@pytest.mark.parametrize(
    ("chosen", "field"),
    [
        ({"features": "principal"}, "features_epsilon"),
        ({"features": "principal", "features_epsilon": -1.0}, "features_epsilon"),
        ({"features": "principal", "features_epsilon": 2.0}, "features_epsilon"),
        ({"features": "standard", "features_epsilon": 0.5}, "features_epsilon"),
        ({"features": "encoder"}, "features"),
    ],
)
def test_combinations_without_a_proof_are_refused(chosen, field):
    with pytest.raises(InvalidConfiguration, match=field):
        learning.open_images(make_user(), **chosen)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"features_epsilon": None}, "annotation_project_features_fit_data"),
        ({"features_epsilon": 0.0}, "no choice declares this value of features.features_epsilon"),
        ({"data_kind": "text"}, "annotation_project_features_fit_data"),
        ({"features": "encoder", "features_epsilon": None}, "annotation_project_features_fit_data"),
        ({"features": "standard"}, "annotation_project_features_fit_data"),
        ({"features": None, "features_epsilon": None}, "annotation_project_features_fit_data"),
        ({"features": "learned from the pool"[:10]}, "no choice declares this value of features.features"),
    ],
)
def test_the_database_refuses_them_too(project, change, rule):
    with pytest.raises(IntegrityError, match=rule), transaction.atomic():
        write_settings(project, **change)
