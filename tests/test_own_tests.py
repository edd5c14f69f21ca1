"""Every module of the product has a test of its name in its app, or one imports it, or is listed with who tests it."""

import ast
import re
from functools import cache

import pytest

from tests.test_source_rules import OURS, ROOT
from tests.through_others import TESTED_THROUGH_OTHERS

# Who tests what no test imports, by where it lies.
TESTED_AS_A_WHOLE = {
    r"/views(\.py$|/)|_views\.py$": "tests/web asks for the pages by their addresses",
    r"/forms(\.py$|/)": "tests/web posts them",
    r"/templatetags/": "tests/web reads the pages they write",
    r"/(apps|urls|asgi|wsgi|__main__|formats)\.py$": "loaded by every process that a test starts",
    r"/models/": "imported from the package of all tables",
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
    tests = {
        (app, path.stem.removeprefix("test_"))
        for app in OURS
        for path in (ROOT / "tests").glob(f"*/{app}/**/test_*.py")
    }
    imported, called = imported_by_tests(), called_by_tests()
    for name in sorted(names):
        stem = name.rpartition("/")[2].removesuffix(".py")
        own = (name.partition("/")[0], stem) in tests or name.removesuffix(".py").replace("/", ".") in imported
        command = "/management/commands/" in name and stem in called
        if not own and not command and not any(re.search(where, name) for where in TESTED_AS_A_WHOLE):
            yield name


def test_every_module_has_a_test_or_is_listed_once_with_who_tests_it():
    """What got a test, or is gone, leaves the list."""
    listed = [module for listed in TESTED_THROUGH_OTHERS.values() for module in listed]
    assert sorted(without_a_test(modules())) == sorted(listed)


def test_who_tests_what_is_listed_is_there():
    assert [
        test for test, reason in TESTED_THROUGH_OTHERS if not (ROOT / test).is_file() or len(reason.split()) < 4
    ] == []


@pytest.mark.slow
def test_a_module_without_a_test_is_found():
    assert list(without_a_test(["privacy/planted_nowhere.py"])) == ["privacy/planted_nowhere.py"]
    # A test of this name is another app's.
    assert list(without_a_test(["privacy/markdown.py"])) == ["privacy/markdown.py"]
