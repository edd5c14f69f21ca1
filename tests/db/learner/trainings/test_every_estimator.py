from uuid import uuid4

import numpy as np
import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from annotation.errors import InvalidConfiguration
from annotation.models import Consensus
from annotation.models.configurations import remember
from annotation.projects.services.configuring import configure_project
from learner.errors import UnknownChoice
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.catalogue import words_for
from learner.models import ModelRelease, TrainingRun
from learner.models.sums import ReleasedSums
from learner.pools import records
from learner.pools.selectors import training_event
from learner.pools.starts import described_prior
from learner.releases import storage
from learner.releases.services import publishing
from learner.rounds.services import training
from learner.strategies.blocks import block_rates
from privacy.accounting.event import event_from_json
from privacy.errors import UnsoundCombination
from privacy.ledger import populations
from privacy.ledger import services as ledger
from tests import learning
from tests.dying import Killed, die_at
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


CONSTANT = 0.3
# So little noise that counts can be read off the sums.
QUIET = {"training_epsilon": 150.0, "training_delta": 1e-6, "pool_epsilon": 650.0, "pool_delta": 1e-3}


@pytest.fixture
def project(remembered):
    return remembered("a pool of secret sums", filled_for_sums)


def filled_for_sums():
    opened = learning.open_secret(
        make_user(), features="planned", estimator="sums", text_columns=16, maximum_releases=None, **QUIET
    )
    learning.fill_trusted(opened, number=200)
    return opened


def counted(sums: ReleasedSums) -> float:
    return float(np.frombuffer(bytes(sums.class_sums)).reshape(-1, sums.dimension)[:, -1].sum()) / CONSTANT


def noise(sums: ReleasedSums, errors: float = 6.0) -> float:
    classes = len(bytes(sums.class_sums)) // 8 // sums.dimension
    return errors * float(np.sqrt(classes * sums.class_variance)) / CONSTANT


def settled(*blocks: int) -> int:
    return Consensus.objects.filter(query__round_number__in=blocks, choice__isnull=False).count()


def test_each_release_is_made_of_all_blocks_so_far(project):
    learning.run_to_release(project, make_user(), version=3)
    first, second, third = ReleasedSums.objects.order_by("run__version")
    # Blocks of 20, 30 and 45 % count by their rates, so that all together are as many as they are.
    rates = block_rates(0.2, 1.5)
    for n, sums in enumerate((first, second, third), start=1):
        weights = np.array(rates[:n]) * sum(rates[:n]) / sum(rate**2 for rate in rates[:n])
        assert settled(n) > 0
        known = sum(weight * settled(block) for block, weight in enumerate(weights, start=1))
        assert counted(sums) == pytest.approx(known, abs=noise(sums))
        # Plain sums would have three times the noise.
        assert sums.class_variance == pytest.approx((weights**2).sum() * first.class_variance)
        assert sums.moment_variance == pytest.approx((weights**2).sum() * first.moment_variance)
    assert [sums.entry for sums in (first, second, third)] == [
        release.entry for release in ModelRelease.objects.order_by("version")
    ]


def test_a_release_reads_its_own_block_alone(project, monkeypatch):
    learning.run_to_release(project, make_user(), version=1)
    read = []
    real = training.pool_selectors.labelled_examples

    def remember(*args, **kwargs):
        examples, classes = real(*args, **kwargs)
        read.append(len(examples.rows))
        return examples, classes

    monkeypatch.setattr(training.pool_selectors, "labelled_examples", remember)
    learning.run_to_release(project, make_user(), version=2)
    assert read == [settled(2)]


def test_what_was_told_before_is_not_a_prior_as_well(project, monkeypatch):
    seen = []
    real = training._fit

    def remember(run, estimator, *rest):
        inside = getattr(estimator, "estimator", estimator)
        seen.append((inside.prior, inside.earlier))
        return real(run, estimator, *rest)

    monkeypatch.setattr(training, "_fit", remember)
    learning.run_to_release(project, make_user(), version=2)
    # Before anything was told, the names of the classes are what a training of texts leans on.
    assert seen[0][0].to_json() == described_prior(project).to_json()
    assert seen[0][1] is None
    assert seen[1][0].to_json() == described_prior(project).to_json()
    assert seen[1][1] is not None


def test_sums_of_another_shape_begin_anew(project):
    learning.run_to_release(project, make_user(), version=1)
    configure_project(project=project, changes={"moment_share": 0.0}, actor=project.created_by)
    project.refresh_from_db()
    learning.run_to_release(project, make_user(), version=2)
    second = ReleasedSums.objects.get(run__version=2)
    assert second.moments is None
    assert counted(second) == pytest.approx(settled(2), abs=noise(second))


def test_sums_are_written_once_and_with_their_release(project, monkeypatch):
    die_at(monkeypatch, "training_published", publishing)
    learning.work_off(project)
    learning.label_everything(project, make_user())
    learning.selection.close_block(project=project)
    learning.loop.advance_project(project_id=project.pk)
    run = TrainingRun.objects.get()
    with pytest.raises(Killed):
        training.train_model(run_id=str(run.pk))
    assert not ReleasedSums.objects.exists()
    monkeypatch.undo()
    type(run).objects.filter(pk=run.pk).update(leased_until="2000-01-01T00:00Z")
    training.train_model(run_id=str(run.pk))
    assert ReleasedSums.objects.get().run_id == run.pk
    with pytest.raises(IntegrityError, match="written once"):
        ReleasedSums.objects.update(class_variance=1.0)


def test_a_training_made_dearer_since_is_no_part_of_the_series(project):
    learning.run_to_release(project, make_user(), version=1)
    within = training_event(project)
    assert (within.kind, within.block) == ("secret_block", 2)
    configure_project(project=project, changes={"training_epsilon": 151.0}, actor=project.created_by)
    project.refresh_from_db()
    beyond = training_event(project)
    assert (beyond.kind, beyond.rate) == ("secret_sample", 1.0)
    # Fit and pick together cost a little less than is declared.
    assert 150.999 < beyond.cost().epsilon <= 151.0


def test_a_step_of_the_series_is_paid_by_one_release(project):
    account = project.pool_account
    opening = records.release_event(project, block=1)
    ledger.reserve(account=account, event=opening, purpose="one", key=uuid4())
    with pytest.raises(UnsoundCombination, match="another release has paid for this step"):
        ledger.reserve(account=account, event=opening, purpose="two", key=uuid4())
    following = records.release_event(project, block=2)
    held = ledger.reserve(account=account, event=following, purpose="three", key=uuid4())
    assert event_from_json(held.parent.event) == opening
    with pytest.raises(UnsoundCombination, match="another release has paid for this step"):
        ledger.reserve(account=account, event=following, purpose="four", key=uuid4())


def test_people_of_several_projects_pay_for_each_block_as_a_sample_of_its_own():
    """A series has no price for a group, and none in rho, so a population's projects do without."""
    project = learning.open_secret(make_user(), maximum_releases=None)
    population = populations.open_shared_account(
        name="People", unit="contributor", filter="zcdp", epsilon_limit=5000.0, delta_limit=0.01, actor="ada"
    )
    populations.join_population(
        population=population, accounts=[project.pool_account], records_per_person=3, actor="ada"
    )
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=2)
    charged = [event_from_json(release.entry.parent.event) for release in ModelRelease.objects.order_by("version")]
    rates = block_rates(0.2, 1.5)
    assert [(event.kind, event.rate, event.released_before) for event in charged] == [
        ("secret_sample", rates[0], 0.0),
        ("secret_sample", rates[1], 0.0),
    ]
