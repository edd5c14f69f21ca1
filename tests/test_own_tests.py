"""Every module of the product has a test of its name, or one that imports it, or is listed with who tests it."""

import ast
import re
from functools import cache

from tests.test_source_rules import OURS, ROOT

# Who tests what no test imports, by where it lies.
TESTED_AS_A_WHOLE = {
    r"/views(\.py$|/)|_views\.py$": "tests/web asks for the pages by their addresses",
    r"/forms(\.py$|/)": "tests/web posts them",
    r"/templatetags/": "tests/web reads the pages they write",
    r"/(apps|urls|asgi|wsgi|__main__|formats)\.py$": "loaded by every process that a test starts",
    r"/models/": "imported from the package of all tables",
}
# Parts of one thing, tested through the module that uses them; a new module gets a test of its own.
TESTED_THROUGH_OTHERS = {
    "annotation/access.py",
    "annotation/choices/answers_unit.py",
    "annotation/choices/choice_fields.py",
    "annotation/choices/own_choices.py",
    "annotation/choices/preset.py",
    "annotation/choices/refusals.py",
    "annotation/data/parsers/parquet.py",
    "annotation/data/parsers/parquet_pages.py",
    "annotation/gates/receipts.py",
    "annotation/log/history.py",
    "annotation/people/group_sheets.py",
    "annotation/people/identity.py",
    "annotation/people/services/second_manager.py",
    "annotation/projects/beside.py",
    "annotation/projects/protection_words.py",
    "annotation/questions/downloads.py",
    "annotation/questions/own_answers.py",
    "annotation/questions/report_selectors.py",
    "annotation/rest/idempotency.py",
    "annotation/rest/pagination.py",
    "annotation/rest/responses.py",
    "annotation/signals.py",
    "annotation/statement/budget_levels.py",
    "annotation/statement/downloads.py",
    "annotation/work/services/idempotency.py",
    "annotation/work/services/leases.py",
    "dpal_site/bodies.py",
    "dpal_site/demo/digits.py",
    "dpal_site/demo/without_privacy.py",
    "dpal_site/embedded/launch.py",
    "dpal_site/failures.py",
    "dpal_site/health.py",
    "dpal_site/monitoring/long_work.py",
    "dpal_site/observables/model_pages.py",
    "dpal_site/preferences.py",
    "dpal_site/preparation.py",
    "dpal_site/problems.py",
    "dpal_site/schedule.py",
    "dpal_site/serving/sockets.py",
    "dpal_site/serving/worker.py",
    "learner/access.py",
    "learner/estimators/online_choices.py",
    "learner/features/word_lists.py",
    "learner/planning/simulation/crowd_pool.py",
    "learner/pools/services/room.py",
    "learner/releases/evidence_api.py",
    "learner/releases/evidence_sheet.py",
    "learner/releases/front_matter.py",
    "learner/releases/licences.py",
    "learner/releases/onnx_export.py",
    "learner/releases/pipeline_export.py",
    "learner/releases/privacy_document.py",
    "learner/releases/safetensors_export.py",
    "learner/reproduce/chaudhuri2008.py",
    "learner/reproduce/chaudhuri2008_curves.py",
    "learner/reproduce/feyisetan2019_sketches.py",
    "learner/reproduce/ghassemi2016.py",
    "learner/reproduce/ghassemi_screens.py",
    "learner/reproduce/plots.py",
    "learner/reproduce/rane2019_coins.py",
    "learner/reproduce/rane2019_version_space.py",
    "learner/rounds/services/repeat_rounds.py",
    "learner/rounds/services/spread_rounds.py",
    "learner/streams/services/stream_releases.py",
    "learner/trainings/services/channel_training.py",
    "learner/work/keys.py",
    "learner/work/services/attempts.py",
    "privacy/accounting/checks.py",
    "privacy/accounting/events_answers.py",
    "privacy/accounting/events_choice.py",
    "privacy/accounting/events_gaussian.py",
    "privacy/accounting/events_labels.py",
    "privacy/accounting/events_online.py",
    "privacy/accounting/noise_words.py",
    "privacy/accounting/vector_noise.py",
    "privacy/audit/account.py",
    "privacy/contributions/capping.py",
    "privacy/contributions/counting.py",
    "privacy/moments.py",
    "privacy/services/marks.py",
    "privacy/tasks.py",
}


def modules():
    return {
        str(path.relative_to(ROOT)): path
        for app in OURS
        for path in (ROOT / app).rglob("*.py")
        if path.name != "__init__.py" and "migrations" not in path.parts and path.read_text().strip()
    }


@cache
def imported_by_tests():
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


@cache
def called_by_tests():
    """Return every word that stands in quotes in a test: commands are called by it."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    return {word for text in texts for word in re.findall(r"[\"'](\w+)[\"']", text)}


def without_a_test(names):
    """Yield the modules that neither a name, nor an import, nor a call, nor where they lie connects to a test."""
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests").rglob("test_*.py")}
    imported, called = imported_by_tests(), called_by_tests()
    for name in sorted(names):
        stem = name.rpartition("/")[2].removesuffix(".py")
        own = stem in tests or name.removesuffix(".py").replace("/", ".") in imported
        command = "/management/commands/" in name and stem in called
        if not own and not command and not any(re.search(where, name) for where in TESTED_AS_A_WHOLE):
            yield name


def test_every_module_has_a_test_or_is_listed():
    assert set(without_a_test(modules())) <= TESTED_THROUGH_OTHERS


def test_the_list_shrinks():
    """What got a test, or is gone, leaves the list."""
    assert set(without_a_test(modules())) >= TESTED_THROUGH_OTHERS


def test_a_module_without_a_test_is_found():
    assert list(without_a_test(["privacy/planted_nowhere.py"])) == ["privacy/planted_nowhere.py"]
