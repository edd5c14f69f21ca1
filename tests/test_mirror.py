"""Tests stand where what they test stands: `tests/<kind>/<app>/<room>/`, and beside the rooms what tests one module."""

from pathlib import PurePosixPath

import pytest

from tests.test_source_rules import OURS, ROOT

KINDS = ("pure", "db", "web", "browser", "faults", "statistical")
# Where each app's code lies.
CODE = {**{app: app for app in OURS}, "client": "client/src/dpal"}
# Folders of a kind that are no app's.
OF_NO_APP = {"tests/faults/storm": "the load, the site and the verdict that all storms share"}
# What tests no room, and no module that stands beside the rooms.
ACROSS_ROOMS = {
    "tests/pure/privacy/test_gate_stages.py": "both gates in stages, which two modules and the contributions make",
    "tests/statistical/privacy/test_gate_audits.py": "both gates and the cap of a person, each in a module",
    "tests/pure/dpal_site/test_certificates.py": "the script of `deploy/`, which is no module",
    "tests/pure/dpal_site/test_deployment.py": "the image, the compose file and the lock files",
    "tests/pure/dpal_site/test_security_page.py": "the pages about security, which name tests of every app",
    "tests/pure/dpal_site/test_sentences.py": "the messages of every app, found in their sources",
    "tests/db/dpal_site/test_schema.py": "the tables of every app, as the database has them",
    "tests/web/learner/test_outside.py": "whatever engineers and annotators may read, in every room",
    "tests/web/dpal_site/test_account_forms.py": "forms of the library for sign-in, as the standard wants them",
    "tests/web/dpal_site/test_account_permissions.py": "pages of two libraries, against every kind of person",
    "tests/web/dpal_site/test_admin.py": "what every app shows in Django's administration",
    "tests/web/dpal_site/test_foreign_ids.py": "every address of the site that names something",
    "tests/web/dpal_site/test_fuzz_pages.py": "every page of the site, asked oddly",
    "tests/web/dpal_site/test_german_pages.py": "every page of the site, in German",
    "tests/web/dpal_site/test_known_holes.py": "holes of other platforms, looked for everywhere",
    "tests/web/dpal_site/test_observables.py": "every page and route, against what is declared of it",
    "tests/web/dpal_site/test_openapi.py": "every route of the interface, against its description",
    "tests/web/dpal_site/test_page_routes.py": "every page that changes something, beside its routes",
    "tests/web/dpal_site/test_permissions.py": "every address of the site, beside its row",
    "tests/web/dpal_site/test_twin_sites.py": "whole sites that differ in one record",
    "tests/browser/dpal_site/test_pages.py": "every page's own policy of content",
    "tests/faults/dpal_site/test_compose_processes.py": "all processes that the compose file starts",
    "tests/faults/dpal_site/test_restore_drill.py": "a whole site, put back from its backup",
    "tests/faults/dpal_site/test_site.py": "a whole site, started by one command",
}
# What walks through the whole site, or tests what is no app's; what tests a module of `tests/` has its name.
OF_THE_WHOLE = {
    "tests/pure/test_advisories.py": "a script of `deploy/` that lists weaknesses",
    "tests/pure/test_benchmark_commands.py": "the programs of `benchmarks/`, which start",
    "tests/pure/test_ordinary_runs.py": "the runs of tests themselves, and what they leave out",
    "tests/pure/test_outdated.py": "a script of `deploy/` that asks for later versions",
    "tests/pure/test_setup.py": "the script of `.ci/` that sets everything up",
    "tests/db/test_own_folder.py": "the runs of tests themselves, and their files",
    "tests/db/test_test_database.py": "the database of tests, emptied and copied",
    "tests/browser/test_admin_walk.py": "a manager's walk through a whole project",
    "tests/browser/test_newcomer.py": "the walk from an empty site to a question",
    "tests/browser/test_pages.py": "every page of a manager and an engineer",
    "tests/browser/test_screenshots.py": "pictures of pages for README and manual",
    "tests/faults/test_brokers.py": "a whole site on brokers as Debian ships them",
    "tests/faults/test_part_killed.py": "split work of every app, and who goes on",
    "tests/faults/test_storm.py": "a whole site, everything of it killed at random",
    "tests/faults/test_troubles.py": "what goes wrong around a whole site",
    "tests/faults/test_worker_killed.py": "a whole loop, whose workers are killed",
}


def files_of_tests():
    return {str(path.relative_to(ROOT)) for kind in KINDS for path in (ROOT / "tests" / kind).rglob("*.py")}


def out_of_place(name):
    """Say why a file below a kind of tests stands where nothing of the product does, or return nothing."""
    _tests, kind, *folders, file = PurePosixPath(name).parts
    if not folders:
        helper = ROOT / "tests" / file.removeprefix("test_")
        return "" if helper.is_file() or not file.startswith("test_") else f"tests have no module {helper.name}"
    app, *rooms = folders
    if f"tests/{kind}/{app}" in OF_NO_APP:
        return ""
    if app not in CODE:
        return f"there is no app {app}"
    folder = ROOT.joinpath(CODE[app], *rooms)
    if not any(folder.glob("*.py")):
        return f"{app} has no room {'/'.join(rooms)}"
    if not rooms and file.startswith("test_") and not (folder / file.removeprefix("test_")).is_file():
        return f"{app} has no module {file.removeprefix('test_')} beside its rooms"
    return ""


def test_each_test_stands_where_what_it_tests_stands():
    """What has moved into a room, or is gone, leaves the list."""
    assert {name for name in files_of_tests() if out_of_place(name)} == {*ACROSS_ROOMS, *OF_THE_WHOLE}


def test_each_that_stands_elsewhere_says_why():
    assert [name for name, why in {**ACROSS_ROOMS, **OF_THE_WHOLE, **OF_NO_APP}.items() if len(why.split()) < 4] == []
    assert [name for name in OF_NO_APP if not (ROOT / name).is_dir()] == []


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("tests/web/annotation/test_planted.py", "annotation has no module planted.py beside its rooms"),
        ("tests/db/annotation/test_agreement.py", "annotation has no module agreement.py beside its rooms"),
        ("tests/db/learner/planted/test_loop.py", "learner has no room planted"),
        ("tests/pure/privacy/accounting/planted/made_by_hand.py", "privacy has no room accounting/planted"),
        ("tests/web/planted/test_api.py", "there is no app planted"),
        ("tests/browser/test_label.py", "tests have no module label.py"),
    ],
)
def test_a_test_that_stands_elsewhere_is_found(planted, said):
    assert out_of_place(planted) == said


def test_what_stands_in_its_place_is_let_stand():
    for fitting in (
        "tests/pure/annotation/quality/test_agreement.py",
        "tests/pure/annotation/questions/test_planted.py",
        "tests/pure/annotation/test_markdown.py",
        "tests/db/learner/conftest.py",
        "tests/pure/client/features/test_planted.py",
        "tests/faults/storm/site.py",
        "tests/faults/small_parts.py",
    ):
        assert out_of_place(fitting) == ""
