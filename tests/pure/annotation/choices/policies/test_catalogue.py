import pytest

from annotation.choices.policies import (
    POLICIES,
    BatchPolicy,
    WindowPolicy,
    chosen_policy,
    policy_choice_of,
    policy_hides_selection,
)

STREAM = {"oracle": "trusted", "arrival": "stream", "data_kind": "text"}


def test_a_pool_has_rounds_and_a_stream_everything_else():
    pool = STREAM | {"arrival": "pool"}
    sound = {where["arrival"]: {p.name for p in POLICIES if not p.sound.broken(where)} for where in (pool, STREAM)}
    assert sound["pool"] == {"per_round"}
    assert sound["stream"] == {"flsw_hidden", "flmb"}


def test_only_hidden_windows_divide_by_a_public_number():
    assert [p.name for p in POLICIES if "window_denominator" in {each.name for each in p.parameters()}] == [
        "flsw_hidden"
    ]


SAID = STREAM | {"window_length": 6, "window_denominator": 2}


@pytest.mark.parametrize("policy", [one for one in POLICIES if issubclass(one, WindowPolicy)], ids=lambda one: one.name)
def test_each_of_a_stream_says_its_rule_and_hides_as_it_is_declared(policy):
    settings = SAID | {"update_policy": policy.name}
    rule = policy_choice_of(settings).batches()
    assert isinstance(rule, BatchPolicy)
    assert rule.selection_visible is not policy.hides_selection
    assert policy_hides_selection(settings) == policy.hides_selection


@pytest.mark.parametrize(
    ("policy", "said", "broken"),
    [
        ("flmb", {"window_length": 5, "window_denominator": 5}, {"window_denominator"}),
        ("flsw_hidden", {"window_length": 5}, {"window_denominator"}),
        ("flsw_hidden", {}, {"window_length", "window_denominator"}),
        ("per_round", {}, {"update_policy"}),
    ],
)
def test_each_refuses_numbers_that_it_has_not_and_asks_for_its_own(policy, said, broken):
    found = chosen_policy({"update_policy": policy})
    assert found is not None
    assert found.broken_by(STREAM | said).keys() == broken
