"""The import rules that import-linter cannot see: its names are no patterns, and nothing is loaded."""

import ast
import os
import re
import subprocess
import sys
import tomllib

import pytest

from tests.test_source_rules import ROOT, imported, sources

PURE = (
    "privacy.accounting.events",
    "privacy.accounting.composition",
    "privacy.mechanisms.discrete",
    "privacy.gate",
    "annotation.parsers",
    "annotation.choices.consensus",
    "learner.features.text",
    "learner.estimators.logistic",
    "learner.strategies.top_c",
    "learner.artifacts.files",
)
PROBE = """
import importlib, sys
importlib.import_module(sys.argv[1])
print("django" in sys.modules, "celery" in sys.modules)
"""


@pytest.mark.one_in(6)
@pytest.mark.parametrize("module", PURE)
def test_pure_modules_load_without_django(module: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "DPAL"))}
    loaded = subprocess.run(
        [sys.executable, "-c", PROBE, module], env=environment, capture_output=True, text=True, check=False
    )
    assert loaded.stdout.split() == ["False", "False"], loaded.stderr


def test_no_catalogue_of_a_project_names_what_only_reproduces_a_paper() -> None:
    """The contracts forbid the import; this looks at what a loaded site really holds."""
    probe = (
        "import sys; import dpal_site.urls, dpal_site.celery, learner.strategies.catalogue, learner.tasks; "
        "print(sorted(name for name in sys.modules if name.startswith('learner.reproduce')))"
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


IN_A_ROOM = re.compile(r"(?:annotation|learner)/\w+/((?:\w+_)?(?:views|api|presenters|tasks))(?:\.py|/)")
OPENS_FORMS = re.compile(r"/forms(\.py|/)|(/|_)(views|api)(\.py|/)")
A_FORM = re.compile(r"(annotation|learner)\.\w+\.forms\b")
# What a page and a route share of forms.
MAY_OPEN_FORMS = {
    "learner/planning/draft_rows.py": "rows of a plan as drafts of the wizard",
    "learner/planning/row_table.py": "settings of a row, called as their forms call them",
}


def ordered_in_a_room() -> set[str]:
    """Return the names that the contract about the order inside a room knows."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "inside a room")
    return set(re.findall(r"\((\w+)\)", " ".join(layers)))


def named_in_a_room(paths: set[str]) -> set[str]:
    return {found[1] for path in paths if (found := IN_A_ROOM.match(path))}


def test_the_order_inside_a_room_knows_every_view_route_and_presenter() -> None:
    """A new one is written into the contract, and one that is gone leaves it."""
    named = named_in_a_room(set(sources()))
    assert {"views", "api", "members_api", "row_views", "group_presenters"} <= named
    assert named | {"forms", "services", "selectors"} == ordered_in_a_room()


def test_a_route_that_the_order_does_not_know_is_found() -> None:
    planted = {"annotation/people/planted_api.py", "learner/rounds/planted_views.py", "annotation/planted_api.py"}
    assert named_in_a_room(planted) - ordered_in_a_room() == {"planted_api", "planted_views"}


def opening_forms(read: dict[str, str]) -> set[str]:
    """Return the modules that import forms and are neither views nor routes nor forms."""
    return {
        path
        for path, source in read.items()
        if "forms" in source and not OPENS_FORMS.search(path)
        if any(A_FORM.match(name) for name in imported(ast.parse(source)))
    }


def test_forms_are_opened_by_views_routes_and_other_forms() -> None:
    ours = {path: source for path, source in sources().items() if path.startswith(("annotation/", "learner/"))}
    assert opening_forms(ours) == set(MAY_OPEN_FORMS)


def test_a_module_that_opens_forms_is_found() -> None:
    opens = "from annotation.people.forms.mails import MailForm"
    planted = {
        "annotation/people/planted.py": opens,
        "learner/rounds/services/planted.py": "from annotation.people import forms",
        "annotation/people/views/planted.py": opens,
        "annotation/people/planted_api.py": opens,
        "annotation/people/forms/planted.py": opens,
    }
    assert opening_forms(planted) == {"annotation/people/planted.py", "learner/rounds/services/planted.py"}
