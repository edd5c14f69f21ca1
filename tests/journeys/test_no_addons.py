import os
import subprocess
import sys

import pytest
from django.conf import settings

LOADED = """
import sys, django
django.setup()
import dpal_site.urls
from django.apps import apps
from dpal_site.celery import app
app.loader.import_default_modules()
print([name for name in sys.modules if name.startswith("addons.")], [one.name for one in apps.get_app_configs()])
"""


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DPAL_ADDONS": "", "PYTEST_XDIST_WORKER": "gw7"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_of_an_addon_is_loaded():
    loaded, apps = run("-c", LOADED).split("] [")
    assert loaded == "["
    assert "'annotation'" in apps
    assert "addons" not in apps


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    "test", ["test_demo.py::test_a_small_demo_ends_with_its_table", "test_three_releases.py"], ids=["site", "releases"]
)
def test_the_main_loop_runs(test):
    """A site is started, a project opened, its upload labelled, and a model trained and released."""
    assert " passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/journeys/{test}")
