import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDE = 5
# By a table's opening tag in its template.
READ_ACROSS = {
    "learner/templates/learner/releases/_measures.html": (
        'class="matrix"',
        "a matrix, whose cells lie in two headings",
    ),
    "annotation/templates/annotation/projects/_opening_file.html": (
        'class="look"',
        "rows of a file, compared as they lie in it",
    ),
    "annotation/templates/annotation/data/preview.html": ('class="look"', "rows of a file, compared as they lie in it"),
    "annotation/templates/annotation/gates/gate.html": (
        'class="matrix"',
        "a matrix of what is true of which gate",
    ),
}
TABLE = re.compile(r"<table\b([^>]*)>(.*?)</table>", re.DOTALL)
HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
CELL = re.compile(r"<td\b((?:\{%.*?%\}|[^>])*)>", re.DOTALL)
INCLUDED = re.compile(r'\{% include "([^"]+)"')


def templates():
    return sorted([*ROOT.glob("*/templates/**/*.html"), *ROOT.glob("addons/*/templates/**/*.html")])


def with_parts(body):
    included = tuple(f"/templates/{name}" for name in INCLUDED.findall(body))
    parts = [path.read_text() for path in templates() if str(path).endswith(included)]
    return "".join([body, *(part for part in parts if "<table" not in part)])


def squeezed(attributes, body):
    head, _, rows = body.partition("<tbody")
    headings = HEADING.findall(head)
    # A loop brings a column for each of something.
    if len(headings) < WIDE and "{% for" not in head:
        return ""
    if 'class="stack"' not in attributes:
        return "is no stack"
    labelled = [cell for cell in CELL.findall(with_parts(rows)) if "data-label=" in cell]
    silent = len(CELL.findall(with_parts(rows))) - len(labelled)
    acting = sum("sr-only" in heading for heading in headings)
    return f"{silent - acting} cells say no heading" if silent > acting else ""


def test_wide_tables_are_cards_on_a_phone():
    found = []
    for path in templates():
        kept, _why = READ_ACROSS.get(str(path.relative_to(ROOT)), ("", ""))
        for attributes, body in TABLE.findall(path.read_text()):
            wrong = "" if kept and kept in attributes else squeezed(attributes, body)
            found += [f"{path.name}: {wrong}"] if wrong else []
    assert not found


def test_reasons_stand_for_tables_that_are_there():
    for name, (kept, _why) in READ_ACROSS.items():
        assert any(kept in attributes for attributes, _body in TABLE.findall((ROOT / name).read_text())), name


def test_a_wide_table_without_labels_is_found():
    head = "<thead><tr>" + 5 * '<th scope="col">a</th>' + "</tr></thead><tbody><tr>"
    assert squeezed("", head + 5 * '<td data-label="a">1</td>') == "is no stack"
    assert squeezed(' class="stack"', head + 4 * '<td data-label="a">1</td>' + '<td class="n">1</td>')
    assert not squeezed(' class="stack"', head + 5 * "<td data-label=\"{% translate 'a > b' %}\">1</td>")
