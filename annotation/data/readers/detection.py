"""Detection of how a file is written, what each column is for, and which classes a labelled file names."""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from statistics import median
from typing import Any, BinaryIO

from annotation.data.readers.guessing import CONTRIBUTOR_NAMES, LABEL_NAMES, PIXEL_NAMES, TEXT_NAMES, plain_name
from annotation.data.readers.images import image_content, is_image_entry, picture_of, upright_image
from annotation.data.readers.reading import Upload
from annotation.data.readers.shapes import shape_of
from annotation.errors import InvalidUpload
from annotation.work.limits import Answer, Limits, run
from dpal.reading.cells import BadCell
from dpal.reading.encodings import Encoding
from dpal.reading.formats import Format
from dpal.reading.labels import labels_in, name_key, one_hot_labels
from dpal.reading.rows import FirstRows, Layout
from dpal.reading.shapes import FileShape
from dpal.spans.formats import spans_in

READING = ("has_header", "delimiter", "quoting", "encoding", "sheet", "skip_rows")
SEPARATORS = ("|", ";", ",")
# A file of another kind is a bad image, and its folder no class.
IMAGE_ENDINGS = ("", ".png", ".jpg", ".jpeg", ".jfif", ".webp")
LOOKED_AT = 500
SHOWN = 5
MOST_LABELLED = 200_000
MOST_VALUES = 1000
HEAD_BYTES = 1024 * 1024
THUMBNAILS = 6
THUMBNAIL_SIDE = 96
ID_NAMES = ("id", "uuid", "key", "ticket", "number", "nr", "no")
MOST_SHARE_OF_OTHER_LETTERS = 0.3
# The commonest short words of each language, which hardly occur in the others.
WORDS = {
    "en": ("the", "and", "is", "to", "of", "my", "you", "this", "with", "for", "was", "not"),
    "de": ("der", "die", "und", "ist", "das", "nicht", "ich", "ein", "mit", "den", "wie", "auch"),
    "fr": ("le", "les", "et", "est", "je", "pas", "des", "une", "pour", "vous", "dans", "que"),
    "es": ("el", "los", "y", "es", "una", "por", "con", "no", "las", "para", "muy", "que"),
    "it": ("il", "che", "di", "non", "per", "sono", "una", "con", "della", "ho", "mi", "gli"),
    "nl": ("het", "een", "en", "van", "niet", "ik", "dat", "op", "met", "voor", "zijn", "maar"),
}


@dataclass(frozen=True, slots=True)
class Labels:
    """Values of a column of known labels, in the order of classes; for spans, their types.

    `spelled` maps other spellings to a class, `separator` stands between several in a cell, `most` is how many a row
    has.
    """

    counts: Mapping[str, int]
    spelled: Mapping[str, str] = field(default_factory=dict)
    separator: str = ""
    most: int = 1
    spans: bool = False

    @property
    def classes(self) -> list[str]:
        return list(dict.fromkeys(self.spelled.get(value, value) for value in self.counts))

    @property
    def are_steps(self) -> bool:
        """Say whether the classes are three or more whole numbers in a row."""
        if self.most > 1 or not all(re.fullmatch(r"-?\d{1,2}", name) for name in self.classes):
            return False
        steps = sorted(map(int, self.classes))
        return len(steps) > 2 and steps == list(range(steps[0], steps[-1] + 1)) and len(steps) <= 11


@dataclass(frozen=True, slots=True)
class DetectedFile:
    """A file as it was found: `reading` says how it is written, `roles` what each column is for."""

    shape: FileShape
    kind: str
    reading: Mapping[str, Any]
    roles: Mapping[str, str]
    columns: Mapping[str, Sequence[Any]]
    language: str = ""
    size: tuple[int, int] = (0, 0)
    images: int = 0
    thumbnails: tuple[bytes, ...] = ()

    @property
    def rows(self) -> list[list[str]]:
        shown = [[_shown(cell) for cell in cells[:SHOWN]] for cells in self.columns.values()]
        return [list(row) for row in zip(*shown, strict=True)]


def detect_file(
    file: BinaryIO, name: str, *, maximum_bytes: int, labelled: bool, reading: Mapping[str, Any] | None = None
) -> DetectedFile:
    """Look at the beginning of a file; what `reading` says of it is taken for granted."""
    given = dict(reading or {})
    shape, given = _shape(file, name, given, maximum_bytes)
    file.seek(0)
    if shape.format is Format.IMAGES:
        return _images(file, shape, labelled=labelled)
    columns = _first_cells(file, name, shape, given, maximum_bytes)
    roles, kind = _roles(columns, shape, labelled=labelled)
    texts = [cell for column, cells in columns.items() if roles[column] == "text" for cell in cells]
    side = _square_side(columns) if kind == "image" else 0
    return DetectedFile(shape, kind, given, roles, columns, language_of(texts), (side, side))


def labels_of(
    file: BinaryIO,
    name: str,
    *,
    columns: Sequence[str],
    reading: Mapping[str, Any],
    shape: FileShape,
    maximum_bytes: int,
) -> Labels:
    """Read a column of a public file, or one for each class, and return its labels; refuse more than 1,000 values."""
    file.seek(0)
    if shape.format is Format.IMAGES:
        return sorted_labels(next(run(look_at_images, file, Limits(), most=1))[0]["folders"])
    task = shape.format is Format.TASKS
    layout = _layout(reading, () if task else columns, label=columns[0] if task else None)
    cells: list[Any] = []
    for batch in Upload(file, name, layout, maximum_bytes=maximum_bytes).cells():
        cells += batch.columns[columns[0]] if len(columns) == 1 else one_hot_labels(batch.columns, columns)
        if len(cells) > MOST_LABELLED:
            break
    if _are_spans(cells):
        types = Counter(span[2] for cell in cells for span in spans_in(cell))
        return Labels({name: types[name] for name in sorted(types, key=str.casefold)}, spans=True)
    return sorted_labels(cells, separator=reading.get("separator"))


def examples_of(
    file: BinaryIO, name: str, *, text: str, label: str, reading: Mapping[str, Any], maximum_bytes: int, most: int
) -> list[tuple[str, str]]:
    """Return the label and the text of the first `most` rows of each label of a public file of texts."""
    file.seek(0)
    taken: Counter[str] = Counter()
    found: dict[tuple[str, str], None] = {}
    seen = 0
    for batch in Upload(file, name, _layout(reading, (text, label)), maximum_bytes=maximum_bytes).cells():
        for said, known in zip(batch.columns[text], batch.columns[label], strict=True):
            pair = str(known or "").strip(), " ".join(str(said or "").split())
            if all(pair) and pair not in found and taken[pair[0]] < most:
                found[pair] = None
                taken[pair[0]] += 1
        seen += len(batch.columns[text])
        if seen > MOST_LABELLED:
            break
    return list(found)


def sorted_labels(cells: Sequence[Any], *, separator: str | None = None) -> Labels:
    """Count the labels in some cells; spellings that differ in case, `_` or spaces alone are one class."""
    separator = separator or next((mark for mark in SEPARATORS if _is_split_by(mark, cells)), "")
    named = [_labels_in(cell, separator) for cell in cells]
    counts = Counter(name for names in named for name in names if name)
    if len(counts) > MOST_VALUES:
        raise InvalidUpload("label: the column has more than 1,000 different values, so it holds no classes")
    commonest: dict[str, str] = {}
    for value, _count in counts.most_common():
        commonest.setdefault(name_key(value), value)
    spelled = {value: commonest[name_key(value)] for value in counts if commonest[name_key(value)] != value}
    numbers = all(re.fullmatch(r"-?\d+", value) for value in counts)
    order = sorted(counts, key=(lambda value: (int(value), value)) if numbers else str.casefold)
    most = max(map(len, named), default=1)
    return Labels({value: counts[value] for value in order}, spelled, separator if most > 1 else "", max(1, most))


def language_of(texts: Sequence[Any]) -> str:
    """Return the code of the language that most short words of some texts belong to; empty where none stands out."""
    words = Counter(word for text in texts for word in re.findall(r"[^\W\d_]+", str(text).lower()))
    found = {code: sum(words[word] for word in known) for code, known in WORDS.items()}
    best = max(found, key=lambda code: found[code])
    others = max(count for code, count in found.items() if code != best)
    return best if found[best] >= 3 and found[best] > 1.2 * others else ""


def _shape(file: BinaryIO, name: str, given: dict[str, Any], maximum_bytes: int) -> tuple[FileShape, dict[str, Any]]:
    file.seek(0)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if "encoding" not in given and _looks_western(head):
        try:
            return _shape(file, name, {**given, "encoding": Encoding.WINDOWS_1252.value}, maximum_bytes)
        except InvalidUpload:
            # No text file, so it has no encoding.
            file.seek(0)
    asked = {key: given[key] for key in READING if key in given}
    shape = shape_of(file, name, maximum_bytes=maximum_bytes, **asked)
    if shape.format in (Format.CSV, Format.TSV):
        given.setdefault("delimiter", shape.delimiter)
        if "has_header" not in given:
            file.seek(0)
            given["has_header"] = _has_header(file, name, shape, given, maximum_bytes)
            if not given["has_header"]:
                file.seek(0)
                return _shape(file, name, given, maximum_bytes)
    if shape.format is Format.WORKBOOK:
        given.setdefault("sheet", shape.sheet)
    return shape, given


def _looks_western(head: bytes) -> bool:
    """Say whether bytes are no UTF-8, yet words with some accents where they are read as Windows-1252."""
    try:
        head[: len(head) - 3].decode()
    except UnicodeDecodeError as error:
        if head.startswith((b"\xff\xfe", b"\xfe\xff", b"PK", b"PAR1", b"\x1f\x8b")) or b"\0" in head[:64]:
            return False
        if error.start >= len(head) - 6:
            return False
        text = head.decode(Encoding.WINDOWS_1252, "replace")
        letters = [letter for letter in text if letter.isalpha()]
        other = sum(letter > "\x7f" for letter in letters)
        if "\ufffd" in text or other > MOST_SHARE_OF_OTHER_LETTERS * len(letters):
            return False
        # Any bytes decode: that the words are of a Western language is what tells.
        return bool(language_of([text]))
    return False


def _has_header(file: BinaryIO, name: str, shape: FileShape, given: Mapping[str, Any], maximum_bytes: int) -> bool:
    """Say whether the first line names the columns: it has no number, no long cell and no value of a later row."""
    first = list(shape.columns)
    known = {plain_name(each) for each in (*TEXT_NAMES, *LABEL_NAMES, *CONTRIBUTOR_NAMES, *ID_NAMES, *PIXEL_NAMES)}
    if any(plain_name(cell) in known for cell in first):
        return True
    if not all(first) or len(set(first)) < len(first) or any(_is_number(cell) or len(cell) > 60 for cell in first):
        return False
    try:
        columns = _first_cells(file, name, shape, {**given, "has_header": True}, maximum_bytes)
    except InvalidUpload:
        return True
    if any(title in cells for title, cells in columns.items()):
        return False
    # A sentence names no column.
    return not any(len(title.split()) > 4 for title in first)


def _layout(reading: Mapping[str, Any], columns: Sequence[str], *, label: str | None = None) -> Layout:
    return Layout(
        kind="text", label=label, metadata=tuple(columns), **{key: reading[key] for key in READING if key in reading}
    )


def _first_cells(
    file: BinaryIO, name: str, shape: FileShape, reading: Mapping[str, Any], maximum_bytes: int
) -> dict[str, list[Any]]:
    file.seek(0)
    layout = _layout(reading, [column for column in dict.fromkeys(shape.columns) if column])
    upload = Upload(file, name, layout, maximum_bytes=maximum_bytes, look=FirstRows(LOOKED_AT))
    cells: dict[str, list[Any]] = {column: [] for column in layout.metadata}
    for batch in upload.cells():
        for column, found in cells.items():
            found += batch.columns[column][: LOOKED_AT - len(found)]
        if len(batch.lines) and all(len(found) >= LOOKED_AT for found in cells.values()):
            break
    return cells


def _roles(columns: Mapping[str, Sequence[Any]], shape: FileShape, *, labelled: bool) -> tuple[dict[str, str], str]:
    """Return what each column is for, and what a record is."""
    roles = dict.fromkeys(columns, "")
    free = list(columns)

    def take(role: str, among: Sequence[str]) -> None:
        if among:
            roles[among[0]] = role
            free.remove(among[0])

    pixels = [name for name in free if plain_name(name) in PIXEL_NAMES and _are_lists(columns[name])]
    if "pixel_0" in columns or pixels:
        take("pixels", pixels)
        take("label", _named(free, LABEL_NAMES) if labelled else ())
        return roles, "image"
    spans = [name for name in free if _are_spans(columns[name])]
    take("label", spans if labelled else ())
    free = [name for name in free if name not in spans]
    texts = sorted((name for name in free if _is_text(columns[name])), key=lambda name: -_length(columns[name]))
    named_texts = [name for name in _named(free, TEXT_NAMES) if name in texts or len(free) == 1]
    take("text", named_texts or texts)
    take("contributor", () if labelled else _named(free, CONTRIBUTOR_NAMES))
    if labelled and not shape.controls and not spans:
        few = [name for name in reversed(free) if _is_class(columns[name])]
        flags = [name for name in free if {str(cell).strip() for cell in columns[name]} <= {"0", "1"}]
        if len(flags) > 1 and "text" in roles.values() and not _named(free, LABEL_NAMES):
            # A column of 0 and 1 for each class.
            few = flags[:1]
            for name in flags[1:]:
                take("label", [name])
        take("label", _named(free, LABEL_NAMES) or few)
    ids = [*_named(free, ID_NAMES), *(name for name in free if plain_name(name).endswith("id"))]
    take("id", [name for name in ids if not labelled and len(set(map(str, columns[name]))) == len(columns[name])])
    if "text" in roles.values():
        return roles, "text"
    numbers = [name for name in free if _are_numbers(columns[name])]
    if not numbers:
        take("text", [name for name in free if any(map(str, columns[name]))][:1])
        return roles, "text"
    for name in free:
        likely = name in numbers or _is_class(columns[name])
        # A column called like a label, in a file without known labels, is what is asked for.
        roles[name] = "feature" if likely and (labelled or name not in _named(free, LABEL_NAMES)) else ""
    return roles, "table"


def _named(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns called one of some names, in the order of these."""
    places = {plain_name(name): place for place, name in reversed(list(enumerate(names)))}
    return sorted((name for name in columns if plain_name(name) in places), key=lambda name: places[plain_name(name)])


def _is_text(cells: Sequence[Any]) -> bool:
    words = [len(str(cell).split()) for cell in cells if cell not in (None, "")]
    return bool(words) and not _are_numbers(cells) and (median(words) >= 3 or max(words) >= 6)


def _is_class(cells: Sequence[Any]) -> bool:
    values = [str(cell) for cell in cells if cell not in (None, "")]
    return bool(values) and len(set(values)) <= max(2, min(len(values) // 2, MOST_VALUES))


def _length(cells: Sequence[Any]) -> float:
    return median([len(str(cell)) for cell in cells] or [0])


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool):
        return False
    return isinstance(cell, int | float) or bool(re.fullmatch(r"[-+]?\d+([.,]\d+)?([eE][-+]?\d+)?", str(cell).strip()))


def _are_numbers(cells: Sequence[Any]) -> bool:
    filled = [cell for cell in cells if cell not in (None, "")]
    return bool(filled) and all(map(_is_number, filled))


def _are_lists(cells: Sequence[Any]) -> bool:
    return bool(cells) and all(isinstance(cell, list | tuple) for cell in cells)


def _are_spans(cells: Sequence[Any]) -> bool:
    """Say whether all filled cells hold spans, at least one of them some."""
    try:
        return sum(len(spans_in(cell)) for cell in cells) > 0
    except (ValueError, TypeError, KeyError):
        return False


def _square_side(columns: Mapping[str, Sequence[Any]]) -> int:
    pixels = sum(name.startswith("pixel_") for name in columns)
    if not pixels:
        pixels = next((len(cells[0]) for cells in columns.values() if _are_lists(cells)), 0)
    side = round(pixels**0.5)
    return side if side * side == pixels else 0


def _labels_in(cell: Any, separator: str) -> list[str]:
    try:
        return labels_in(cell, separator=separator)
    except BadCell:
        return []


def _is_split_by(mark: str, cells: Sequence[Any]) -> bool:
    """Say whether a mark stands between names in some cells: the parts are fewer than the cells' own values."""
    texts = {cell.strip() for cell in cells if isinstance(cell, str) and not cell.strip().startswith("[")}
    if not any(mark in text for text in texts):
        return False
    split = {text: {part.strip() for part in text.split(mark)} for text in texts}
    together = set().union(*split.values())
    return len(together) < len(texts) or any(parts & texts for text, parts in split.items() if mark in text)


def _shown(cell: Any) -> str:
    items = cell if isinstance(cell, list) else [cell]
    parts = [" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in items]
    said = ", ".join(parts)
    return "" if cell is None else said[:200].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _images(file: BinaryIO, shape: FileShape, *, labelled: bool) -> DetectedFile:
    found = list(run(look_at_images, file, Limits(), most=THUMBNAILS))
    opening, thumbnails = found[0][0], tuple(content for _, content in found[1:])
    roles = dict.fromkeys(shape.columns, "label" if labelled else "id")
    return DetectedFile(
        shape, "image", {}, roles, {}, size=tuple(opening["size"]), images=opening["images"], thumbnails=thumbnails
    )


def look_at_images(file: BinaryIO, *, most: int) -> Iterator[Answer]:
    """Yield what an archive holds and the size of its first image, then thumbnails; a job of a limited process."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise InvalidUpload("file: the zip archive is damaged or cut off") from None
    entries = [entry for entry in archive.infolist() if is_image_entry(entry)]
    size: tuple[int, int] = (0, 0)
    thumbnails: list[bytes] = []
    paths = [PurePosixPath(entry.filename) for entry in entries]
    folders = [path.parent.name for path in paths if path.suffix.lower() in IMAGE_ENDINGS]
    for entry in islice(entries, most):
        try:
            with upright_image(image_content(archive, entry)) as image:
                size = size if any(size) else (image.height, image.width)
                image.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
                thumbnails.append(picture_of(image).content)
        except BadCell:
            continue
    if not thumbnails:
        raise InvalidUpload("file: the zip archive holds no PNG, JPEG or WebP images")
    yield {"images": len(entries), "size": size, "folders": folders}, b""
    yield from (({}, content) for content in thumbnails)
