import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_source_rules import ROOT

# Eight cases, marked `one_in(4)`.
FAMILY = "tests/pure/privacy/mechanisms/test_sums.py::test_empirical_sensitivity"


def collected(module):
    """Return what an ordinary run would take of a module; it is a run of its own, and removes only what it wrote."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "-m", "not slow"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("DPAL_TEST_RUN", "PYTEST_XDIST_"))}
    ours = Path(os.environ["DPAL_VAR"])
    ours.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*command, module], cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    assert ours.is_dir()
    return done.stdout


@pytest.mark.slow
def test_every_nth_case_is_taken():
    out = collected(FAMILY)
    assert sum(line.startswith(FAMILY) for line in out.splitlines()) == 2
    assert "2/8 tests collected (6 deselected)" in out


@pytest.mark.slow
def test_of_a_module_in_a_browser_what_is_for_every_change_is_taken():
    module = "tests/browser/annotation/review/test_views.py"
    assert [line for line in collected(module).splitlines() if line.startswith(module)] == [
        f"{module}::test_a_reviewer_goes_through_the_queue_by_keys"
    ]
