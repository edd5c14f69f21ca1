"""SECURITY.md: every test it names exists, every chapter is there, and what has no test says why."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "SECURITY.md").read_text()
CHAPTERS = 17


def missing(page):
    """Yield the tests a page names that are not there."""
    for named in re.findall(r"`((?:\w+/)*test_\w+\.py(?:::\w+)*)`", page):
        path, *names = named.split("::")
        file = ROOT / "tests" / path
        if not file.exists():
            yield named
            continue
        body = ast.parse(file.read_text()).body
        for name in names:
            found = [each for each in body if getattr(each, "name", "") == name]
            if not found:
                yield named
                break
            body = found[0].body


def test_every_named_test_exists():
    assert list(missing(PAGE)) == []


def test_a_test_that_does_not_exist_is_noticed():
    assert list(missing("`test_architecture.py::test_nothing`, `web/test_none.py`, `test_architecture.py`")) == [
        "test_architecture.py::test_nothing",
        "web/test_none.py",
    ]


def test_every_chapter_is_there_and_every_line_has_a_test_or_a_reason():
    chapters = re.findall(r"^### V(\d+) ", PAGE, re.MULTILINE)
    assert [int(number) for number in chapters] == list(range(1, CHAPTERS + 1))
    lines = re.findall(r"^- \*\*(V[\d., V]+(?: \([^)]*\))?)\*\* (.*)$", PAGE, re.MULTILINE)
    assert len(lines) >= 60
    reasons = ("Not met", "Partly met", "Not applicable", "Level 3 only")
    assert [number for number, text in lines if "*Shown by* `" not in text and not text.startswith(reasons)] == []


def test_every_named_document_exists():
    for path in re.findall(r"\bdocs/[\w./-]+\.md", PAGE):
        assert (ROOT / path).exists(), path
