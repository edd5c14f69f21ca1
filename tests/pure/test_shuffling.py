"""The order drawn from a seed: the same for every worker, complete, and no module torn apart."""

from itertools import groupby
from types import SimpleNamespace

from tests.shuffling import shuffled

TESTS = [SimpleNamespace(nodeid=f"tests/test_{module}.py::test_{number}") for module in "abcdef" for number in range(8)]


def names(tests):
    return [test.nodeid for test in tests]


def test_a_seed_draws_one_order_however_the_tests_were_found():
    assert names(shuffled(TESTS, "1")) == names(shuffled(TESTS[::-1], "1"))
    assert names(shuffled(TESTS, "1")) != names(shuffled(TESTS, "2"))


def test_modules_and_their_tests_are_shuffled_and_none_is_lost():
    found = names(shuffled(TESTS, "1"))
    assert sorted(found) == sorted(names(TESTS))
    modules = [module for module, _ in groupby(found, key=lambda name: name.partition("::")[0])]
    assert len(modules) == 6
    assert modules != sorted(modules)
    assert [name for name in found if "test_a.py" in name] != sorted(name for name in found if "test_a.py" in name)
