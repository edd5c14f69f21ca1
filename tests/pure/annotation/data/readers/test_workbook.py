import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.data.readers import workbook
from annotation.data.readers.preview import preview_of
from annotation.data.readers.reading import Upload, detect_format
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from dpal.reading.formats import Format
from dpal.reading.rows import BadRow, FirstRows, Layout
from dpal_site.embedded.servers import REPOSITORY
from tests.workbooks import MAIN, shared, sheet, styles
from tests.workbooks import workbook as made

TEXT = Layout(kind="text", text="text")
HEADER = ["id", "text"]


def read(data, layout=TEXT, *, maximum_bytes=10**9, look=None):
    batches = list(Upload(io.BytesIO(data), "a.xlsx", layout, maximum_bytes=maximum_bytes, look=look).batches())
    return [text for batch in batches for text in batch.texts], [bad for batch in batches for bad in batch.bad]


def one_cell(value, **options):
    texts, bad = read(made({"A": sheet([["text"], [value]])}, **options))
    return texts[0] if texts else bad[0].reason


def raw(cells, **options):
    return made({"A": f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>"}, **options)


FIRST = '<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'


class TestCells:
    @pytest.mark.parametrize(
        ("value", "said"),
        [
            ("Grüße < & >", "Grüße < & >"),
            (42, "42"),
            (-7, "-7"),
            (0.1, "0.1"),
            (2.5e300, "2.5e+300"),
            (True, "TRUE"),
            (False, "FALSE"),
            (("n", 0, "<v>0.30000000000000004</v>"), "0.30000000000000004"),
            (("n", 0, "<v>1E3</v>"), "1000"),
            (("str", 0, '<f>CONCAT("a","b")</f><v>ab</v>'), "ab"),
            (("n", 0, "<f>1+1</f><v>2</v>"), "2"),
            (("d", 0, "<v>2024-05-01T00:00:00</v>"), "2024-05-01T00:00:00"),
            (("inlineStr", 0, "<is><r><t>rich</t></r><r><t>text</t></r><rPh><t>aloud</t></rPh></is>"), "richtext"),
            (("inlineStr", 0, "<is><t>a_x000D_b _x005F_x0041_</t></is>"), "a\rb _x0041_"),
            (("inlineStr", 0, "<is><t>a_x0000_b</t></is>"), "holds a NUL character"),
        ],
    )
    def test_what_one_says(self, value, said):
        assert one_cell(value).startswith(said)

    @pytest.mark.parametrize(
        ("code", "value", "said"),
        [
            (14, 45413, "2024-05-01"),
            (22, 45413.5, "2024-05-01T12:00:00"),
            (20, 0.34375, "08:15:00"),
            (46, 1.25, "30:00:00"),
            ("dd/mm/yyyy", 45413, "2024-05-01"),
            ("mmm", 45413, "2024-05-01"),
            ("h:mm", 0.5, "12:00:00"),
            ("[hh]:mm", 2, "48:00:00"),
            ('[Red]yyyy-mm-dd"T"hh:mm;@', 45413.25, "2024-05-01T06:00:00"),
            ("General", 45413, "45413"),
            ('0.00" days"', 1.5, "1.5"),
            ("#,##0", 1200, "1200"),
            (14, 59, "1900-02-28"),
            (14, 61, "1900-03-01"),
            (14, 2_958_465, "9999-12-31"),
        ],
    )
    def test_numbers_that_a_style_shows_as_dates(self, code, value, said):
        assert one_cell(("n", 1, f"<v>{value!r}</v>"), style_sheet=styles(code)).startswith(said)

    @pytest.mark.parametrize("value", [("n", 0, "<f>1+1</f>"), ("n", 0, "<f>1+1</f><v/>"), ("e", 0, "<v>#DIV/0!</v>")])
    def test_a_formula_without_a_value_is_an_empty_cell(self, value):
        assert read(made({"A": sheet([HEADER, [1, value]])})) == ([], [BadRow(2, "text", "is empty")])

    def test_days_counted_since_1904(self):
        value = ("n", 1, "<v>43951</v>")
        assert one_cell(value, style_sheet=styles(14), since_1904=True) == "2024-05-01"

    def test_shared_texts_in_any_order(self):
        texts = [f"text {number} ü" for number in range(9000)]
        wanted = [8999, 0, 5000, 0, 8999]
        rows = [["text"], *([("s", 0, f"<v>{number}</v>")] for number in wanted)]
        found, bad = read(made({"A": sheet(rows)}, shared_texts=shared(*texts)))
        assert (found, bad) == ([texts[number] for number in wanted], [])

    @given(rows=st.lists(st.tuples(st.text(st.characters(codec="utf-8", exclude_characters="\0"))), max_size=5))
    def test_texts_come_back(self, rows):
        """What XML cannot hold is written as spreadsheets write it."""
        kept = [text for (text,) in rows if text.strip()]

        def written(text):
            text = text.replace("_x", "_x005F_x")
            return "".join(f"_x{ord(c):04X}_" if ord(c) < 32 or c in "￾￿" else c for c in text)

        found, _ = read(made({"A": sheet([["text"], *([written(text)] for text in kept)])}))
        assert found == kept


class TestRows:
    def test_lines_are_the_numbers_of_rows_in_the_sheet(self):
        rows = [HEADER, [1, "good"], [], [2, "  "], [3, None], [4, "fine"]]
        texts, bad = read(made({"A": sheet(rows, first=3)}))
        assert texts == ["good", "fine"]
        assert bad == [BadRow(6, "text", "is empty"), BadRow(7, "text", "is empty")]

    def test_merged_cells_are_named_and_never_guessed(self):
        rows = [HEADER, [1, "a"], [2, "b"], [3, None], [4, "c"], [5, "d"]]
        texts, bad = read(made({"A": sheet(rows, merged=["B3:B4", "C2:D9", "A5:A6"])}))
        assert texts == ["a", "c", "d"]
        assert bad == [BadRow(3, "text", workbook.MERGED), BadRow(4, "text", workbook.MERGED)]

    def test_a_merged_header_refuses_the_file(self):
        with pytest.raises(InvalidUpload, match="line 1 is a merged cell"):
            read(made({"A": sheet([HEADER, [1, "a"]], merged=["A1:B1"])}))

    def test_without_a_header_columns_are_called_by_their_place(self):
        data = made({"A": sheet([["ham", "hello"], ["spam", "win"]])})
        assert read(data, Layout(kind="text", text="2", has_header=False)) == (["hello", "win"], [])

    def test_a_table_reads_as_from_a_file_of_lines(self):
        layout = Layout(
            kind="table",
            declared=({"name": "age", "low": 0, "high": 100}, {"name": "job", "categories": ["cook", "TRUE"]}),
        )
        data = made({"A": sheet([["age", "job"], [31.5, "cook"], ["44", True], ["old", "cook"]])})
        batches = list(Upload(io.BytesIO(data), "a.xlsx", layout, maximum_bytes=10**9).batches())
        assert [row for batch in batches for row in batch.payloads] == [
            {"age": 31.5, "job": "cook"},
            {"age": 44, "job": "TRUE"},
        ]
        assert [bad for batch in batches for bad in batch.bad] == [BadRow(4, "age", "is not a finite number")]

    def test_many_batches(self, monkeypatch):
        monkeypatch.setattr(workbook, "BATCH_ROWS", 7)
        texts, bad = read(made({"A": sheet([HEADER, *([n, f"text {n}"] for n in range(100))])}))
        assert (texts, bad) == ([f"text {n}" for n in range(100)], [])

    def test_rows_and_cells_without_places_follow_one_another(self):
        cells = "<row><c t='str'><v>id</v></c><c t='str'><v>text</v></c></row><row><c><v>1</v></c><c><v>2</v></c></row>"
        assert read(raw(cells)) == (["2"], [])

    def test_names_with_a_prefix_are_the_same_names(self):
        data = made(
            {
                "A": f'<x:worksheet {MAIN.replace("xmlns", "xmlns:x")}><x:sheetData><x:row r="1"><x:c r="A1" t="str">'
                '<x:v>text</x:v></x:c></x:row><x:row r="2"><x:c r="A2" t="str"><x:v>hello</x:v></x:c></x:row>'
                "</x:sheetData></x:worksheet>"
            }
        )
        assert read(data) == (["hello"], [])


class TestSheets:
    BOOK = made(
        {
            "old": sheet([["text"], ["hidden"]]),
            "A & B": sheet([["text"], ["first"]]),
            "C": sheet([["words"], ["second"]]),
        },
        hidden=["old"],
    )

    def test_the_first_that_shows_unless_one_is_named(self):
        assert read(self.BOOK)[0] == ["first"]
        assert read(self.BOOK, Layout(kind="text", text="words", sheet="C"))[0] == ["second"]
        assert read(self.BOOK, Layout(kind="text", text="text", sheet="old"))[0] == ["hidden"]

    def test_one_that_is_not_there(self):
        with pytest.raises(InvalidUpload, match="has none named 'D'"):
            read(self.BOOK, Layout(kind="text", text="text", sheet="D"))

    def test_a_look_offers_them(self):
        found = shape_of(io.BytesIO(self.BOOK), "a.xlsx", maximum_bytes=10**9)
        assert (found.format, found.sheets, found.sheet, found.columns) == (
            Format.WORKBOOK,
            ("old", "A & B", "C"),
            "A & B",
            ("text",),
        )
        assert shape_of(io.BytesIO(self.BOOK), "a.xlsx", maximum_bytes=10**9, sheet="C").columns == ("words",)

    def test_only_workbooks_have_sheets(self):
        with pytest.raises(InvalidUpload, match="sheet: only workbooks"):
            Upload(io.BytesIO(b"text\na\n"), "a.csv", Layout(kind="text", text="text", sheet="A"), maximum_bytes=100)

    def test_it_is_known_by_its_content(self):
        assert detect_format(io.BytesIO(self.BOOK), "a.zip").format is Format.WORKBOOK


def raw_sheet(cells):
    return f"<worksheet {MAIN}><sheetData>{FIRST}{cells}</sheetData></worksheet>"


PEAK = """
import resource, sys
from annotation.errors import InvalidUpload
from annotation.data.readers.preview import preview_of
from annotation.data.readers.reading import Upload
from dpal.reading.rows import Layout, FirstRows
from annotation.data.readers.shapes import shape_of
layout = Layout(kind="text", text="text")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    with open(sys.argv[1], "rb") as file:
        shape_of(file, sys.argv[1], maximum_bytes=2**31)
        file.seek(0)
        print(len(preview_of(Upload(file, sys.argv[1], layout, maximum_bytes=2**31, look=FirstRows(20)), layout).rows))
except InvalidUpload as refusal:
    print(refusal)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


class TestALook:
    @pytest.mark.one_in(2)
    @pytest.mark.parametrize(
        ("parts", "said"),
        [
            (
                {"A": raw_sheet(f'<row r="{2**20}"><c r="XFD{2**20}"><v>1</v></c></row>')},
                "file: needs more than 1,024 MiB of memory to be read",
            ),
            ({"A": raw_sheet("<row/>" * 1_000_000)}, "0"),
            ({"A": raw_sheet(" " * 100_000_000)}, "0"),
            ({"A": raw_sheet(f'<row r="2" a="{" " * 100_000_000}"/>')}, "0"),
        ],
        ids=["far corner", "a million empty rows", "blanks", "one attribute"],
    )
    def test_small_files_that_want_to_become_large(self, parts, said, tmp_path):
        """A sheet whose one cell is its last had other readers ask for 17 thousand million cells."""
        file = tmp_path / "a.xlsx"
        file.write_bytes(made(parts))
        assert file.stat().st_size < 150_000
        lines = subprocess.run(
            [sys.executable, "-c", PEAK, str(file)], capture_output=True, text=True, check=True, cwd=REPOSITORY
        ).stdout.splitlines()
        assert "\n".join(lines[:-1]) == said
        assert int(lines[-1]) < 60

    @pytest.mark.slow
    def test_millions_of_shared_texts(self, tmp_path):
        file = tmp_path / "a.xlsx"
        table = f"<sst {MAIN}>{'<si><t>a</t></si>' * 2_000_000}</sst>"
        last = raw_sheet('<row r="2"><c r="A2" t="s"><v>1999999</v></c></row>')
        file.write_bytes(made({"A": last}, shared_texts=table))
        lines = subprocess.run(
            [sys.executable, "-c", PEAK, str(file)], capture_output=True, text=True, check=True, cwd=REPOSITORY
        ).stdout.splitlines()
        assert lines[0] == "1"
        assert int(lines[-1]) < 60

    def test_first_rows_with_their_reasons(self):
        data = made({"A": sheet([HEADER, [1, "a"], [2, None], *([n, "b"] for n in range(50))], merged=["B4:B5"])})
        layout = Layout(kind="text", text="text", contributor="id")
        upload = Upload(io.BytesIO(data), "a.xlsx", layout, maximum_bytes=10**9, look=FirstRows(20))
        rows = preview_of(upload, layout).rows
        assert len(rows) == 20
        assert [cell.value for cell in rows[0].cells] == ["a", "1"]
        assert (rows[1].line, rows[1].cells[0].reason) == (3, "is empty")
        assert (rows[2].line, rows[2].column, rows[2].reason) == (4, "text", workbook.MERGED)
