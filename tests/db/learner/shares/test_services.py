import json
from itertools import cycle

import numpy as np
import pytest
from django.db import transaction

from annotation.models import Consensus, Query, WorkState
from learner.errors import SharesRefused
from learner.estimators import abstaining
from learner.models import Grouping, ModelRelease, SharesReport, TrainingRun
from learner.pools import records
from learner.releases import evaluations, storage
from learner.releases.artifacts.files import verify_release
from learner.releases.selectors import thresholds_of
from learner.releases.services.card_issues import issue_for_higher_limit
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
    learning.upload(project, rows, ["text", "label"], role="public_test")
    for release in ModelRelease.objects.filter(project=project):
        evaluations.evaluate_release(release=release)
    return project


@pytest.fixture
def project(remembered):
    return remembered("two secret blocks with models", released)


def ask(project, *, block=2, grouping=Grouping.WHOLE, column=""):
    return services.ask_shares(project=project, block=block, grouping=grouping, column=column, actor=project.created_by)


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


def tabled():
    """Open a project over a table whose column `place` is declared, with two models of secret blocks."""
    columns = [{"name": "size", "low": 0, "high": 9}, {"name": "place", "categories": ["north", "south"]}]
    secret = {"selection": "secret_sample", "selection_rate": 0.2, "block_growth": 1.5, "block_hours": 24}
    settings = QUIET | secret | {"columns": columns, "features": "standard", "estimator": "logistic"}
    settings |= {"training_delta": 0.0, "pool_delta": 0.0}
    project = learning._open("pool-experts", make_user("manager"), settings, data_kind="table")
    rng = np.random.default_rng(4)
    rows = [[str(rng.integers(0, 9)), ("north", "south", "")[rng.choice(3, p=[0.5, 0.4, 0.1])]] for _ in range(150)]
    learning.upload(project, rows, ["size", "place"])
    answers = cycle([0, 0, 1])
    learning.run_to_release(project, make_user(), version=1, truth=lambda _text: next(answers))
    return project


def test_groups_are_categories_of_a_declared_column(remembered):
    project = remembered("a table with a secret block", tabled)
    report = measured(project, block=1, grouping=Grouping.COLUMN, column="place")
    assert [group["name"] for group in report.groups] == ["north", "south", selectors.OTHER]
    counts = np.array(report.counts["sample"]).reshape(3, -1)
    if "pool" in report.events:
        counts = counts.reshape(3, 3, -1)[:, [0, 2]].sum(axis=1)
    exact = np.zeros((3, len(report.classes) + 1))
    places = {"north": 0, "south": 1}
    asked = Query.objects.filter(project=project, round_number=report.block.number)
    for pk, place in asked.values_list("pk", "record__payload__place"):
        label = Consensus.objects.filter(query=pk).values_list("choice", flat=True).first()
        exact[places.get(place, 2), len(report.classes) if label is None else label] += 1
    np.testing.assert_allclose(counts, exact, atol=2)
    assert exact[:2].sum(axis=1).min() > 3
    assert {row.group for row in selectors.share_rows(report)} == {"north", "south", selectors.OTHER}
    for grouping, column in ((Grouping.COLUMN, "size"), (Grouping.COLUMN, ""), (Grouping.WHOLE, "place")):
        with pytest.raises(SharesRefused, match="No such block"):
            ask(project, block=1, grouping=grouping, column=column)


def test_thresholds_are_charged_and_signed_into_the_release(project, monkeypatch):
    monkeypatch.setattr(abstaining, "WANTED", {0.5: 2, 0.99: 100})
    monkeypatch.setattr(abstaining, "MISSED", 0.5)
    release = ModelRelease.objects.get(project=project, version=1)
    before, folder = len(reserved(project)), release.folder
    report = measured(project, grouping=Grouping.CONFIDENCE)
    assert report.release == release
    # One cell of a record in either reading.
    pool, sample = reserved(project)[before:]
    assert [event_from_json(entry.event).kind for entry in (pool, sample)] == ["class_counts", "secret_block"]
    assert event_from_json(sample.event).inner.counted == 1
    assert sum(report.counts["sample"]) == pytest.approx(
        Query.objects.filter(project=project, round_number=report.block.number).count(), abs=3
    )
    lower, higher = thresholds_of(report)
    assert lower.threshold is not None
    assert higher.threshold is None
    release.refresh_from_db()
    assert release.folder != folder
    with storage.files_at_hand(release) as files:
        verify_release(files, public_key=storage.signer().public_key)
        kept = json.loads((files / "thresholds.json").read_text())
        card, privacy = (files / "card.md").read_text(), json.loads((files / "privacy.json").read_text())
    assert [row["threshold"] for row in kept["abstain"]] == [lower.threshold, None]
    assert "## Abstaining" in card
    # Its price is on the card, and in the lineage.
    assert [line["kind"] for line in privacy["entries"][-2:]] == ["class_counts", "secret_block"]
    assert {entry.parent for entry in release.lineage.all()} >= {pool, sample}
    # A limit that rises issues the card with them again.
    folder, account = release.folder, project.pool_account
    with transaction.atomic():
        issue_for_higher_limit(
            project=project,
            account=account,
            epsilon_limit_nano=2 * account.epsilon_limit_nano,
            delta_limit_atto=account.delta_limit_atto,
        )
    release.refresh_from_db()
    with storage.files_at_hand(release) as files:
        assert json.loads((files / "thresholds.json").read_text()) == kept
        assert "## Abstaining" in (files / "card.md").read_text()
    assert release.folder != folder


def test_no_threshold_without_a_release_that_did_not_learn_from_the_block(project):
    assert [offer.block.block for offer in selectors.offers(project, grouping=Grouping.CONFIDENCE)] == [2]
    with pytest.raises(SharesRefused):
        ask(project, block=1, grouping=Grouping.CONFIDENCE)


def test_a_count_of_another_block_is_held_against_the_one_before(project):
    first = measured(project, block=1)
    assert not any(row.moved for row in selectors.share_rows(first))
    second = measured(project, block=2)
    assert not any(row.moved for row in selectors.share_rows(second))
    # Every record of the second count says the same: a share that moved.
    counts = {name: np.zeros(len(values)).tolist() for name, values in second.counts.items()}
    for name, values in counts.items():
        values[0] = sum(second.counts[name])
    second.counts = counts
    assert any(row.moved for row in selectors.share_rows(second))


def test_the_price_of_a_series_is_known_before_it_begins(project):
    told = selectors.series_price(project)
    spent = sum(entry.epsilon_nano for entry in reserved(project) if entry.mechanism == "secret_block")
    for block in (1, 2):
        measured(project, block=block)
    learning.run_to_release(project, make_user("carol"), version=3)
    measured(project, block=3)
    after = sum(entry.epsilon_nano for entry in reserved(project) if entry.mechanism == "secret_block")
    assert (after - spent) / 1e9 == pytest.approx(told, rel=1e-6)
    assert selectors.series_price(project) is None


def test_no_training_begins_while_shares_are_counted(project):
    report = ask(project)
    with pytest.raises(SharesRefused, match="is running"):
        ask(project)
    learning.work_off(project)
    learning.label_everything(project, make_user("bob"))
    with transaction.atomic(), pytest.raises(SharesRefused, match="measurement is running"):
        loop._start_training(project)
    services.measure_shares(report_id=report.pk)
    TrainingRun.objects.create(project=project, version=99, last_consensus_id=0, labels_used=0)
    with pytest.raises(SharesRefused, match="is running"):
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
