"""Benchmarks start: one of them has the name of a package, which must hide it from none."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["learner", "recipes", "crowd", "selection", "utility", "running_sums"])
def test_it_says_how_it_is_run(name):
    command = [sys.executable, f"benchmarks/{name}.py", "--help"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True)
    assert "usage" in done.stdout
