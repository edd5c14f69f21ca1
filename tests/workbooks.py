"""Workbooks as spreadsheets write them, and as nobody should, out of the XML of their parts."""

import io
import zipfile
from xml.sax.saxutils import escape, quoteattr

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def letters(place):
    name = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def cell(place, row, value):
    """Return a cell: a text as it is, a number, or the XML that a tuple of type, style and content asks for."""
    at = f'r="{letters(place)}{row}"'
    if value is None:
        return ""
    if isinstance(value, tuple):
        kind, style, inner = value
        return f'<c {at} t="{kind}" s="{style}">{inner}</c>'
    if isinstance(value, bool):
        return f'<c {at} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c {at}><v>{value!r}</v></c>"
    return f'<c {at} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def sheet(rows, *, first=1, merged=()):
    lines = []
    for number, row in enumerate(rows, start=first):
        cells = "".join(cell(at, number, value) for at, value in enumerate(row))
        lines.append(f'<row r="{number}">{cells}</row>')
    merges = "".join(f'<mergeCell ref="{one}"/>' for one in merged)
    after = f'<mergeCells count="{len(merged)}">{merges}</mergeCells>' if merged else ""
    return f"<worksheet {MAIN}><sheetData>{''.join(lines)}</sheetData>{after}</worksheet>"


def shared(*texts):
    return f"<sst {MAIN}>{''.join(f'<si><t>{escape(text)}</t></si>' for text in texts)}</sst>"


def styles(*codes):
    """Return styles: 0 shows numbers as they are, the others by these codes or by the number of a known format."""
    own = {number: code for number, code in enumerate(codes, start=164) if isinstance(code, str)}
    formats = "".join(f'<numFmt numFmtId="{number}" formatCode={quoteattr(code)}/>' for number, code in own.items())
    used = [0, *(number if isinstance(code, str) else code for number, code in enumerate(codes, start=164))]
    shown = "".join(f'<xf numFmtId="{number}"/>' for number in used)
    return (
        f'<styleSheet {MAIN}><numFmts>{formats}</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        f"<cellXfs>{shown}</cellXfs></styleSheet>"
    )


def workbook(sheets, *, shared_texts=None, style_sheet=None, hidden=(), since_1904=False, compress=True):
    book = "".join(
        f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}" '
        f'state="{"hidden" if name in hidden else "visible"}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    targets = [(f"rId{number}", "worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(sheets) + 1)]
    targets += [("rIdShared", "sharedStrings", "/xl/sharedStrings.xml"), ("rIdStyles", "styles", "styles.xml")]
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": _relations([("rId1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": (
            f'<workbook {MAIN} xmlns:r="{RELATIONS}"><workbookPr date1904="{int(since_1904)}"/>'
            f"<sheets>{book}</sheets></workbook>"
        ),
        "xl/_rels/workbook.xml.rels": _relations(targets),
        "xl/sharedStrings.xml": shared_texts if shared_texts is not None else shared(),
        "xl/styles.xml": style_sheet if style_sheet is not None else styles(),
    }
    parts |= {f"xl/worksheets/sheet{number}.xml": content for number, content in enumerate(sheets.values(), start=1)}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as target:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name)  # no time in it: what is collected is named by its bytes
            entry.compress_type = target.compression
            target.writestr(entry, content)
    return sink.getvalue()


def _relations(targets):
    listed = "".join(
        f'<Relationship Id="{id_}" Type="{RELATIONS}/{kind}" Target="{target}"/>' for id_, kind, target in targets
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'
