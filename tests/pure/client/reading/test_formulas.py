import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.budget.spending import safe_cell
from dpal.reading.delimited import DelimitedReader
from dpal.reading.formulas import protected, unprotected
from dpal.reading.rows import Layout
from dpal.reading.sources import TextSource

CELLS = st.text("'=+-@\t\n a1(|!.\uff1d", max_size=8) | st.text(max_size=8)


@given(text=CELLS)
def test_reading_takes_away_what_writing_adds(text):
    assert unprotected(protected(text)) == text


@pytest.mark.parametrize(
    "text", ["-1", "+1", "-0.50", "+49 30 1000", "+49 (30) 1-2", "-NxK0a_9", "-5 degrees", "2024-05-01", "- item"]
)
def test_numbers_and_ids_stay_as_they_are(text):
    assert protected(text) == text == safe_cell(text)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        " =1+1",
        "@SUM(1)",
        "+A1(2)",
        "-2+3+cmd|' /C calc'!A0",
        "\t=1",
        "\uff1d1",
        "+x!a",
        "-f(1)",
        "'=1",
        "@home",
    ],
)
def test_what_could_run_begins_with_an_apostrophe(text):
    assert protected(text) == f"'{text}" == safe_cell(text)


def test_what_an_older_file_protected_is_read_as_it_was():
    assert [unprotected(cell) for cell in ("'-1", "'+49 30", "'tis", "it's")] == ["-1", "+49 30", "'tis", "it's"]


@given(texts=st.lists(CELLS.filter(lambda text: "\0" not in text), min_size=1, max_size=5))
def test_a_table_is_read_as_it_was_written(texts):
    written = io.StringIO(newline="")
    csv.writer(written).writerows([["text", "n"], *([protected(text), "1"] for text in texts)])
    data = io.BytesIO(written.getvalue().encode("utf-8", "surrogatepass"))
    source = TextSource(data, compressed=False, maximum_bytes=10**6)
    read = [batch.columns["text"] for batch in DelimitedReader(source, Layout(kind="text", text="text")).batches()]
    assert [cell for cells in read for cell in cells] == texts
