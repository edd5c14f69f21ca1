"""The checklist: every requirement of ASVS 5.0.0 up to level 2 has one line, and every test a line names exists."""

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "asvs.md").read_text()
PAGES = {name: (ROOT / name).read_text() for name in ("SECURITY.md", "docs/asvs.md", "docs/security.md")}
STANDARD = json.loads((Path(__file__).parent / "asvs_5_0_0.json").read_text())
LEVELS = dict.fromkeys(STANDARD["level_1"], 1) | dict.fromkeys(STANDARD["level_2"], 2)
REASONS = ("Not met: ", "Not met here: ", "Partly met: ", "Not applicable: ")
LINE = re.compile(r"^- \*\*(V\d+\.\d+\.\d+)\*\* \((\d)\) (.*)$", re.MULTILINE)


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


@pytest.mark.parametrize("name", PAGES)
def test_every_named_test_exists(name):
    assert list(missing(PAGES[name])) == []


def test_a_test_that_does_not_exist_is_noticed():
    assert list(missing("`test_architecture.py::test_nothing`, `web/test_none.py`, `test_architecture.py`")) == [
        "test_architecture.py::test_nothing",
        "web/test_none.py",
    ]


def test_the_standard_is_whole():
    """70 requirements of level 1 and 183 of level 2, in 17 chapters, numbered without a gap below level 3."""
    assert [len(STANDARD["level_1"]), len(STANDARD["level_2"]), len(LEVELS)] == [70, 183, 253]
    assert {int(name[1:].partition(".")[0]) for name in LEVELS} == set(range(1, 18))


def test_every_requirement_has_one_line_with_its_level():
    lines = [(name, int(level)) for name, level, _ in LINE.findall(PAGE)]
    assert [name for name, count in Counter(lines).items() if count > 1] == []
    assert dict(lines) == LEVELS
    assert PAGE.count("\n- **") == len(lines)


def test_every_line_has_a_test_or_a_reason():
    lines = LINE.findall(PAGE)
    assert [name for name, _, text in lines if "*Shown by* `" not in text and not text.startswith(REASONS)] == []
    reasons = [text.partition("*Shown by*")[0] for _, _, text in lines if text.startswith(REASONS)]
    assert all(len(text.partition(": ")[2]) > 10 for text in reasons)


def test_the_counts_are_those_of_the_lines():
    table = dict(re.findall(r"^\| ([^|]+?) \| (\d+) \|$", PAGE, re.MULTILINE))
    texts = [text for _, _, text in LINE.findall(PAGE)]
    assert int(table["all"]) == len(texts)
    for said, begins in (("not applicable", REASONS[3]), ("partly met", REASONS[2]), ("not met", REASONS[0])):
        assert int(table[said]) == sum(text.startswith(begins) for text in texts)


def test_every_named_document_exists():
    for name, page in PAGES.items():
        for path in re.findall(r"\bdocs/[\w./-]+\.md", page):
            assert (ROOT / path).exists(), path
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page):
            assert ((ROOT / name).parent / link).exists(), link
