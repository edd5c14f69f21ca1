"""Releases come due by label counts alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.policies import UpdatePolicy, labels_for_next_release, labels_needed, next_release_due, releases_within


@pytest.mark.parametrize(
    ("policy", "targets"), [(UpdatePolicy.PER_ROUND, [50, 100, 150, 200]), (UpdatePolicy.DOUBLING, [50, 100, 200, 400])]
)
def test_schedule(policy, targets):
    used = 0
    for target in targets:
        used = labels_for_next_release(policy, labels_at_last_release=used, labels_per_release=50)
        assert used == target


@given(
    policy=st.sampled_from(UpdatePolicy), now=st.integers(0, 500), last=st.integers(0, 500), step=st.integers(1, 200)
)
def test_due_exactly_when_nothing_is_missing(policy, now, last, step):
    counts = {"labels_at_last_release": last, "labels_per_release": step}
    missing = labels_needed(policy, labels_now=now, **counts)
    assert next_release_due(policy, labels_now=now, **counts) == (missing == 0)
    assert next_release_due(policy, labels_now=now + missing, **counts)
    if missing:
        assert not next_release_due(policy, labels_now=now + missing - 1, **counts)


@given(policy=st.sampled_from(UpdatePolicy), labels=st.integers(0, 400), step=st.integers(1, 40))
def test_planned_releases_are_the_ones_that_come_due(policy, labels, step):
    releases, last = 0, 0
    for now in range(1, labels + 1):
        if next_release_due(policy, labels_now=now, labels_at_last_release=last, labels_per_release=step):
            releases, last = releases + 1, now
    assert releases_within(policy, labels=labels, labels_per_release=step) == releases


def test_labels_that_come_in_bulk_make_one_release():
    assert next_release_due(UpdatePolicy.DOUBLING, labels_now=900, labels_at_last_release=100, labels_per_release=50)
    assert (
        labels_needed(UpdatePolicy.DOUBLING, labels_now=900, labels_at_last_release=900, labels_per_release=50) == 900
    )


@pytest.mark.parametrize(("last", "step"), [(-1, 5), (0, 0)])
def test_counts_are_checked(last, step):
    with pytest.raises(ValueError, match="must be >="):
        labels_for_next_release(UpdatePolicy.PER_ROUND, labels_at_last_release=last, labels_per_release=step)


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match="yearly"):
        labels_needed("yearly", labels_now=0, labels_at_last_release=0, labels_per_release=1)
