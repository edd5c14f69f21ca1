"""Spans go out to every format and come back as they were."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.errors import Unreadable
from dpal.spans.formats import WRITERS, SpannedText, read_conll, read_row, write_conll
from dpal.spans.text import Span, spans_of, tokens

TYPES = ("person", "date of birth", "日付")
TEXTS = st.text(st.sampled_from("aB7 '’.-#\té天\n\"\u2028\U0001f600"), max_size=60)


@st.composite
def spanned(draw: st.DrawFn, *, whole: bool = False) -> SpannedText:
    """Draw a text with spans that begin and end anywhere but at white space, or of whole tokens."""
    text = draw(TEXTS)
    if whole:
        tagged = draw(st.lists(st.integers(0, 3), min_size=len(tokens(text)), max_size=len(tokens(text))))
        return SpannedText(text, spans_of(text, tagged, TYPES))
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pairs = [
        (one, other)
        for one, other in zip(edges[::2], edges[1::2], strict=False)
        if text[one:other] == text[one:other].strip()
    ]
    return SpannedText(text, tuple(Span(one, other, draw(st.sampled_from(TYPES))) for one, other in pairs))


@pytest.mark.parametrize("name", WRITERS)
@given(row=spanned())
def test_rows_come_back(name: str, row: SpannedText) -> None:
    assert read_row(json.loads(json.dumps(WRITERS[name](row)))) == row


@given(rows=st.lists(spanned(whole=True), max_size=4))
def test_conll_comes_back(rows: list[SpannedText]) -> None:
    written = "\n".join(write_conll(rows)) + "\n"
    assert list(read_conll(written.split("\n"))) == rows


def test_conll_of_other_tools_is_read() -> None:
    words = ("EU NNP B-ORG", "rejects VBZ O", "German JJ I-MISC", "lamb NN I-MISC", "Anna NN B-MISC")
    lines = ["-DOCSTART- -X- O O", "", *words, ""]
    (row,) = read_conll(lines)
    assert row.text == "EU rejects German lamb Anna"
    assert row.spans == (Span(0, 2, "ORG"), Span(11, 22, "MISC"), Span(23, 27, "MISC"))
    (row,) = read_conll(["# text = Hello, Anna!", "Hello\tO", ",\tO", "Anna\tB-person", "!\tO"])
    assert row == SpannedText("Hello, Anna!", (Span(7, 11, "person"),))


@pytest.mark.parametrize("lines", [["word"], ["word\tX"], ["word\tB-"], ["# text = other", "word\tO"]])
def test_other_lines_are_refused(lines: list[str]) -> None:
    with pytest.raises(Unreadable):
        list(read_conll(lines))


def test_label_studio_gives_its_newest_annotation() -> None:
    def annotation(label: str, **said: object) -> dict[str, object]:
        value = {"start": 0, "end": 4, "text": "Anna", "labels": [label]}
        return {"result": [{"type": "labels", "from_name": "label", "value": value}], **said}

    task = {
        "data": {"text": "Anna"},
        "annotations": [
            annotation("old", updated_at="2026-01-01"),
            annotation("new", updated_at="2026-01-02"),
            annotation("gone", updated_at="2026-01-03", was_cancelled=True),
        ],
    }
    assert read_row(task).spans == (Span(0, 4, "new"),)


@pytest.mark.parametrize(
    "row",
    [
        {},
        [],
        "text",
        {"text": 1, "spans": []},
        {"text": "a", "spans": [{"start": 0, "end": 2, "label": "x"}]},
        {"text": "a", "spans": [{"start": 0, "end": True, "label": "x"}]},
        {"text": "a", "spans": [[0, 1]]},
        {"text": "a", "spans": [[0, 1, ""]]},
        {"text": "ab", "label": [[0, 2, "x"], [1, 2, "y"]]},
        ["a", {"entities": 5}],
    ],
)
def test_other_rows_are_refused(row: object) -> None:
    with pytest.raises(Unreadable):
        read_row(row)


def test_a_span_with_white_space_at_its_edge_is_no_line_of_conll() -> None:
    row = SpannedText("a b", (Span(0, 2, "person"),))
    with pytest.raises(ValueError, match="white space"):
        list(write_conll([row]))
