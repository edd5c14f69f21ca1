"""Of a family of cases an ordinary run takes every nth."""

import subprocess
import sys

import pytest

from tests.test_source_rules import ROOT

# Eight cases, marked `one_in(4)`.
FAMILY = "tests/pure/privacy/mechanisms/test_sums.py::test_empirical_sensitivity"


@pytest.mark.slow
def test_every_nth_case_is_taken():
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "-m", "not slow"]
    done = subprocess.run([*command, FAMILY], cwd=ROOT, capture_output=True, text=True, check=True)
    assert sum(line.startswith(FAMILY) for line in done.stdout.splitlines()) == 2
    assert "2/8 tests collected (6 deselected)" in done.stdout


@pytest.mark.slow
def test_of_a_module_in_a_browser_what_is_for_every_change_is_taken():
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "-m", "not slow"]
    module = "tests/browser/annotation/questions/test_review.py"
    done = subprocess.run([*command, module], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith(module)] == [
        f"{module}::test_a_reviewer_goes_through_the_queue_by_keys"
    ]
