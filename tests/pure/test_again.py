import os
import re
import subprocess
import sys

import pytest

from dpal_site.embedded import servers

CONFTEST = """
from tests.again import try_again

def pytest_configure(config):
    config.addinivalue_line("markers", "browser: needs Chromium")

def pytest_collection_modifyitems(config, items):
    try_again(items, config.rootpath)
"""
# Each fails the first time it runs.
TESTS = """
import pytest
from playwright._impl._errors import TargetClosedError
from playwright.sync_api import Error
from playwright.sync_api import TimeoutError as NoAnswer

TRIED = set()

def first(name):
    return name not in TRIED and (TRIED.add(name) or True)

{mark}
class TestIt:
    def test_late(self):
        if first("late"):
            raise NoAnswer("Timeout 30000ms exceeded.")

    def test_gone(self):
        if first("gone"):
            raise TargetClosedError

    def test_crashed(self):
        if first("crashed"):
            raise Error("Page crashed")

    def test_two_buttons(self):
        if first("two"):
            raise Error("strict mode violation: two buttons")

    def test_another_timeout(self):
        if first("another"):
            raise TimeoutError("Timeout 30000ms exceeded.")

    def test_assertion(self):
        assert not first("assertion"), "TimeoutError: Timeout 30000ms exceeded."

    def test_said_after_a_hiccup(self):
        try:
            if first("said"):
                raise NoAnswer("Timeout 30000ms exceeded.")
        except NoAnswer:
            pytest.fail("no question came")
"""
PLACES = {"browser": True, "journeys": True, "faults": False, "db": True, "statistical": True}


@pytest.mark.slow
def test_only_a_browsers_hiccup_is_tried_again_and_the_summary_names_it(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for folder, marked in PLACES.items():
        (tmp_path / "tests" / folder).mkdir(parents=True)
        text = TESTS.format(mark="@pytest.mark.browser" if marked else "")
        (tmp_path / "tests" / folder / f"test_{folder}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:django", "-raR", "--rootdir=."]
    paths = os.pathsep.join([str(servers.REPOSITORY), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    named = set(re.findall(r"^RERUN tests/(\w+)/\S+::test_(\w+)", ran.stdout, re.MULTILINE))
    hiccups = ("late", "gone", "crashed")
    assert named == {(folder, name) for folder in ("browser", "journeys") for name in hiccups}, ran.stdout
    failed = set(re.findall(r"^FAILED tests/(\w+)/\S+::test_(\w+)", ran.stdout, re.MULTILINE))
    names = re.findall(r"def test_(\w+)", TESTS)
    assert failed == {(folder, name) for folder in PLACES for name in names} - named, ran.stdout
