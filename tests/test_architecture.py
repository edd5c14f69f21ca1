import os
import subprocess
import sys

PURE = (
    "privacy.accounting.events",
    "privacy.accounting.composition",
    "privacy.mechanisms.discrete",
    "privacy.gate.kanonymity",
    "annotation.data.readers",
    "annotation.choices.consensus",
    "learner.features.text",
    "learner.estimators.logistic",
    "learner.strategies.top_c",
    "learner.releases.artifacts.files",
)
PROBE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    assert not {"django", "celery"} & sys.modules.keys(), name
"""


def test_pure_modules_load_without_django() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "DPAL"))}
    command = [sys.executable, "-c", PROBE, *PURE]
    loaded = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr


def test_no_catalogue_of_a_project_names_what_only_reproduces_a_paper() -> None:
    """The contracts forbid the import; this looks at what a loaded site really holds."""
    probe = (
        "import sys; import dpal_site.urls, dpal_site.celery, learner.strategies.catalogue, learner.tasks; "
        "print(sorted(name for name in sys.modules if name.startswith('learner.papers')))"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "dpal_site.settings", "DPAL_NO_SERVERS": "1"}
    loaded = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {probe}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert loaded.stdout.split() == ["[]"], loaded.stderr
