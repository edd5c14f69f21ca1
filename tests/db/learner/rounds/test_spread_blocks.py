"""A first block spread over clusters: paid before it is counted, secret like any other, and the later ones as ever."""

import numpy as np
import pytest
from django.core.management import call_command

from annotation.models import Record
from learner.models import ModelRelease, Round, SecretDraw
from learner.pools.configuration import secret_sample_of
from learner.pools.selectors import trained_on
from learner.rounds.services import loop, selection
from learner.simulation.selectors import plan_forecast
from learner.strategies.blocks import block_rates
from learner.strategies.noisy_clusters import NoisyClusters
from privacy.accounting.event import event_from_json
from privacy.models import LedgerEntry
from tests import learning
from tests.factories import make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def spread():
    project = learning.open_secret(
        make_user(), cluster_epsilon=0.5, cluster_spread=3.0, training_epsilon=6.0, pool_epsilon=40.0
    )
    learning.fill_trusted(project, number=300)
    return project


def asked(number):
    return set(Record.objects.filter(query__round_number=number).values_list("row_number", flat=True))


def test_the_first_block_asks_a_part_of_its_coins_and_pays_counts_beside_the_series(spread):
    assert plan_forecast(spread).next_round == NoisyClusters(0.2, epsilon=0.5).counts_event
    learning.run_to_release(spread, make_user(), version=2)
    coins = np.frombuffer(SecretDraw.objects.get().blocks, dtype=np.uint8)
    assert asked(1) < set(np.flatnonzero(coins == 1))
    assert len(asked(1)) < 0.75 * (coins == 1).sum()
    assert asked(2) == set(np.flatnonzero(coins == 2))
    chosen = list(Round.objects.order_by("number"))
    assert [row.committed_entry.mechanism for row in chosen] == ["cell_counts", "secret_choice"]
    paid = [row.committed_entry.epsilon_nano for row in chosen]
    assert 0.5e9 * (1 - 1e-6) < paid[0] <= 0.5e9
    assert paid[1] == 0
    releases = list(ModelRelease.objects.order_by("version"))
    events = [event_from_json(release.entry.parent.event) for release in releases]
    rates = block_rates(0.2, 1.5)
    assert [(event.block, event.series.rates) for event in events] == [(1, rates), (2, rates)]
    assert all(chosen[0].committed_entry in release.lineage.all() for release in releases)
    # Not even how many were asked about in the mean is said, but the rate that is charged.
    assert trained_on(releases[0].training_run).rate == block_rates(0.2, 1.5)[0]
    call_command("audit_ledger")


def test_no_row_is_read_before_the_counts_are_paid(spread, monkeypatch):
    real = selection.features.stacked_features
    seen = []

    def watched(*args, **kwargs):
        seen.append(LedgerEntry.objects.filter(kind="reserve", mechanism="cell_counts").exists())
        return real(*args, **kwargs)

    monkeypatch.setattr(selection.features, "stacked_features", watched)
    loop.advance_project(project_id=spread.pk)
    loop.run_round(round_id=Round.objects.get().pk)
    assert seen == [True, True]


def test_an_attempt_that_dies_has_paid_for_its_counts_and_the_next_one_counts_anew(spread, monkeypatch):
    class Killed(BaseException):
        pass

    def fault_point(reached):
        if reached == "round_chosen":
            raise Killed

    loop.advance_project(project_id=spread.pk)
    chosen = Round.objects.get()
    monkeypatch.setattr(selection, "fault_point", fault_point)
    with pytest.raises(Killed):
        loop.run_round(round_id=chosen.pk)
    monkeypatch.undo()
    Round.objects.update(leased_until="2000-01-01T00:00Z")
    loop.run_round(round_id=chosen.pk)
    assert [entry.mechanism for entry in learning.entries(spread, "charge")] == ["cell_counts"]
    kept = [entry.mechanism for entry in learning.entries(spread, "commit")]
    assert kept == ["cell_counts"]
    assert learning.open_reservations(spread) == 0


def test_only_the_first_block_is_spread(spread):
    assert isinstance(secret_sample_of(spread, block=1), NoisyClusters)
    # Charged at the rate of the coins, whatever is kept of what they draw.
    first = secret_sample_of(spread, block=1)
    assert (first.rate, first.spread) == (block_rates(0.2, 1.5)[0], 3.0)
    assert not isinstance(secret_sample_of(spread, block=2), NoisyClusters)
