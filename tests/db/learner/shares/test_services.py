import numpy as np
import pytest
from django.db import transaction

from annotation.models import Consensus, Query, WorkState
from learner.errors import SharesRefused
from learner.models import Evaluation, Grouping, ModelRelease, SharesReport, TrainingRun
from learner.pools import records
from learner.rounds.services import loop
from learner.shares import selectors, services
from privacy.accounting.event import event_from_json
from privacy.accounting.series import mixture_epsilon
from privacy.errors import BudgetExceeded
from privacy.ledger import services as ledger
from privacy.ledger.audit import audit_accounts
from privacy.ledger.counter import site_counter
from privacy.ledger.models import EntryKind, LedgerEntry
from tests import learning
from tests.dying import Killed, die_at
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)
# So little noise that counts can be read off.
QUIET = {"training_epsilon": 60.0, "pool_epsilon": 400.0, "maximum_releases": None}


def released(version: int = 2, owner=None, **settings):
    project = learning.open_secret(owner or make_user("manager"), **(QUIET | settings))
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=version)
    # A model that is right on public examples is worth asking.
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(10, seed=9)]
    other = learning.upload(project, rows, ["text", "label"], role="public_test")
    for release in ModelRelease.objects.filter(project=project):
        Evaluation.objects.create(release=release, dataset=other, examples=10, correct=10, constant_correct=5)
    return project


@pytest.fixture
def project(remembered):
    return remembered("two secret blocks with models", released)


def ask(project, *, block=2, grouping=Grouping.WHOLE):
    return services.ask_shares(project=project, block=block, grouping=grouping, actor=project.created_by)


def measured(project, **how):
    report = ask(project, **how)
    services.measure_shares(report_id=report.pk)
    report.refresh_from_db()
    return report


def reserved(project):
    kept = LedgerEntry.objects.filter(account=project.pool_account, kind=EntryKind.RESERVE)
    return list(kept.order_by("sequence"))


def test_counts_are_paid_for_before_and_committed_with_what_they_say(project):
    before = reserved(project)
    (offer,) = (one for one in selectors.offers(project) if one.block.block == 2)
    report = measured(project)
    pool, sample = reserved(project)[len(before) :]
    assert report.state == WorkState.DONE
    assert [entry.mechanism for entry in (pool, sample)] == ["class_counts", "secret_block"]
    assert offer.epsilon == pytest.approx((pool.epsilon_nano + sample.epsilon_nano) / 1e9, abs=3e-9)
    assert {child.kind for entry in (pool, sample) for child in entry.children.all()} == {EntryKind.COMMIT}
    assert report.committed_entry.parent == sample
    for verdict in audit_accounts(scope=project.pool_account.scope, marks=site_counter().marks()):
        assert verdict.differing == 0
    # What the labels say: the noise of both readings is far below a record.
    block = report.block
    labels = Consensus.objects.filter(query__round_number=block.number, votes__gt=0).values_list("choice", flat=True)
    asked = Query.objects.filter(project=project, round_number=block.number).count()
    rows = selectors.share_rows(report)
    shares = [row.labels for row in rows[: len(report.classes)]]
    exact = 100 * np.bincount(list(labels), minlength=len(report.classes)) / asked
    np.testing.assert_allclose(shares, exact, atol=2)
    assert all(row.low <= row.value <= row.high for row in rows)
    assert sum(row.value for row in rows) == pytest.approx(100, abs=3)


def test_a_reading_continues_the_series_and_trainings_count_it(project):
    measured(project, block=1)
    event = event_from_json(reserved(project)[-1].event)
    assert (event.block, event.attempts) == (1, (1, 1, 0))
    assert records.release_event(project, block=3).attempts == (2, 1, 0)
    series = [entry for entry in reserved(project) if entry.mechanism == "secret_block"]
    counted = [count * epsilon for count, epsilon in zip((2, 1, 0), event.series.epsilons, strict=True)]
    total = sum(entry.epsilon_nano for entry in series) / 1e9
    assert total == pytest.approx(mixture_epsilon(event.series.rates, counted), rel=1e-6)


def test_the_model_learned_nothing_from_the_labels_that_correct_it(project):
    first, second = (
        selectors.model_before(project, block)[0] for block in records.blocks_of(project).order_by("block")[:2]
    )
    assert first is None
    assert second.version == 1


def test_an_attempt_that_dies_stays_charged_and_the_next_one_pays_more(project, monkeypatch):
    report = ask(project)
    with monkeypatch.context() as patched:
        die_at(patched, "shares_counted", services)
        with pytest.raises(Killed):
            services.measure_shares(report_id=report.pk)
    SharesReport.objects.filter(pk=report.pk).update(leased_until="2020-01-01T00:00Z")
    before = len(reserved(project))
    services.measure_shares(report_id=report.pk)
    report.refresh_from_db()
    assert report.state == WorkState.DONE
    assert len(reserved(project)) == before + 2
    assert event_from_json(reserved(project)[-1].event).attempts[1] == 2
    assert learning.open_reservations(project) == 0


def test_groups_are_uploads_and_share_none(project):
    report = measured(project, grouping=Grouping.UPLOAD)
    datasets = [key for group in report.groups for key in group["datasets"]]
    assert len(datasets) == len(set(datasets)) == 1
    assert [group["name"] for group in report.groups] == ["rows.csv"]
    assert measured(project, grouping=Grouping.MONTH).groups[0]["name"][:2] == "20"


def test_no_training_begins_while_shares_are_counted(project):
    report = ask(project)
    with pytest.raises(SharesRefused, match="going on"):
        ask(project)
    learning.work_off(project)
    learning.label_everything(project, make_user("bob"))
    with transaction.atomic(), pytest.raises(SharesRefused, match="being counted"):
        loop._start_training(project)
    services.measure_shares(report_id=report.pk)
    TrainingRun.objects.create(project=project, version=99, last_consensus_id=0, labels_used=0)
    with pytest.raises(SharesRefused, match="going on"):
        ask(project)


def test_what_cannot_be_paid_is_refused_before_and_reads_nothing(project):
    spent = sum(entry.epsilon_nano for entry in reserved(project)) / 1e9
    ledger.change_account_limits(
        account=project.pool_account,
        epsilon_limit=spent + 0.01,
        delta_limit=project.pool_account.delta_limit_atto / 1e18,
        actor="manager",
        reason="a test",
    )
    before = len(reserved(project))
    with pytest.raises(BudgetExceeded):
        ask(project)
    assert len(reserved(project)) == before


def test_projects_without_a_sample_have_none(remembered):
    opened = learning.begin_experts(remembered)
    assert selectors.offers(opened) == []
    with pytest.raises(SharesRefused, match="secret sample"):
        ask(opened)
