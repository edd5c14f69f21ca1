"""When answers become an update: each policy says which numbers it has and where it is sound."""

import pytest

from annotation.choices.update_policies import POLICIES, Batches, HiddenWindows, Immediate, VisibleWindows
from annotation.models import UpdatePolicy
from privacy.choices import BrokenRules

STREAM = {"oracle": "trusted", "arrival": "stream", "data_kind": "text"}


def test_every_policy_that_projects_store_is_declared():
    names = [policy.name for policy in POLICIES]
    assert names == ["per_round", "immediate", "flsw", "flsw_hidden", "flmb", "doubling"]
    assert {*UpdatePolicy} <= {*names}
    assert len({policy.label for policy in POLICIES}) == len(POLICIES)


def test_a_pool_has_rounds_or_doublings_and_a_stream_everything_else():
    pool = STREAM | {"arrival": "pool"}
    sound = {where["arrival"]: {p.name for p in POLICIES if not p.sound.broken(where)} for where in (pool, STREAM)}
    assert sound["pool"] == {"per_round", "doubling"}
    assert sound["stream"] == {"doubling", "immediate", "flsw", "flsw_hidden", "flmb"}


@pytest.mark.parametrize("policy", [VisibleWindows, HiddenWindows, Batches])
@pytest.mark.parametrize("length", [None, 0])
def test_a_window_has_a_length(policy, length):
    with pytest.raises(BrokenRules) as refusal:
        policy(window_length=length)
    assert "window_length" in refusal.value.broken


def test_only_hidden_windows_divide_by_a_public_number():
    assert [p.name for p in POLICIES if "window_denominator" in {each.name for each in p.parameters()}] == [
        "flsw_hidden"
    ]
    assert "window_length" not in {each.name for each in Immediate.parameters()}
    assert Immediate().event() is None
