import io
import zipfile
from typing import Any

import pytest

from annotation.data.readers.detection import DetectedFile, detect_file, labels_of, language_of, sorted_labels
from annotation.errors import InvalidUpload
from tests import raw_files

MOST = 10**8


def detect(content: bytes, name: str, *, labelled: bool = False, **reading: Any) -> DetectedFile:
    return detect_file(io.BytesIO(content), name, maximum_bytes=MOST, labelled=labelled, reading=reading)


POOLS = {
    "many": ("text", {"ticket": "id", "body": "text", "agent": ""}, {"delimiter": ",", "has_header": True}, "en"),
    "user names": (
        "text",
        {"user_name": "contributor", "review": "text"},
        {"delimiter": ",", "has_header": True},
        "en",
    ),
    "several": ("text", {"tweet_id": "id", "text": "text"}, {}, "en"),
    "german": (
        "text",
        {"Nr": "id", "Äußerung": "text"},
        {"encoding": "windows-1252", "delimiter": ";", "has_header": True},
        "de",
    ),
    "images": ("image", {"file": "id"}, {}, ""),
    "table": (
        "table",
        {"payment_id": "id", "amount": "feature", "hour": "feature", "country": "feature"},
        {"delimiter": ",", "has_header": True},
        "",
    ),
    "ratings": (
        "text",
        {"response": "", "comment": "text"},
        {"delimiter": "\t", "has_header": True},
        "en",
    ),
    "spans": ("text", {"text": "text"}, {}, "en"),
}
LABELS = {
    "many": ("category", 77, "", 1),
    "user names": ("sentiment", 2, "", 1),
    "several": ("labels", 4, "", 2),
    "german": ("Label", 2, "", 1),
    "images": ("file", 2, "", 1),
    "table": ("is_fraud", 2, "", 1),
    "ratings": ("stars", 5, "", 1),
    "spans": ("spans", 2, "", 1),
}


@pytest.mark.parametrize("kind", raw_files.KINDS)
def test_a_pool_is_recognised(kind: str) -> None:
    brought = raw_files.KINDS[kind]()
    found = detect(brought.pool, brought.pool_name)
    wanted, roles, reading, language = POOLS[kind]
    assert (found.kind, dict(found.roles), found.reading, found.language) == (wanted, roles, reading, language)
    assert bool(found.thumbnails) == (kind == "images")


@pytest.mark.parametrize("kind", raw_files.KINDS)
def test_the_labels_of_a_public_file_are_recognised(kind: str) -> None:
    brought = raw_files.KINDS[kind]()
    found = detect(brought.public, brought.public_name, labelled=True)
    column, number, separator, most = LABELS[kind]
    assert [name for name, role in found.roles.items() if role == "label"] == [column]
    labels = labels_of(
        io.BytesIO(brought.public),
        brought.public_name,
        columns=[column],
        reading=found.reading,
        shape=found.shape,
        maximum_bytes=MOST,
    )
    assert (len(labels.classes), labels.separator, labels.most) == (number, separator, most)
    # Several labels of a row are shown as a person writes them.
    assert not any("[" in cell for row in found.rows for cell in row)


def test_spellings_of_one_class_are_one_class() -> None:
    labels = sorted_labels(["card_arrival", "Card arrival", "card_arrival", "refund"])
    assert labels.classes == ["card_arrival", "refund"]
    assert labels.spelled == {"Card arrival": "card_arrival"}


@pytest.mark.parametrize(
    ("cells", "separator", "classes"),
    [
        (["joy", "joy, love", "anger", "love"], ",", ["anger", "joy", "love"]),
        (["joy|love", "joy", "love"], "|", ["joy", "love"]),
        (["Oslo, Norway", "Rome, Italy", "Oslo, Norway"], "", ["Oslo, Norway", "Rome, Italy"]),
        (['["joy", "love"]', '["joy"]'], "", ["joy", "love"]),
    ],
)
def test_several_labels_in_a_cell_are_told_from_names_with_marks(cells, separator, classes) -> None:
    labels = sorted_labels(cells)
    assert (labels.separator, labels.classes) == (separator, classes)


@pytest.mark.parametrize(
    ("cells", "steps"), [([1, 2, 3, 4, 5], True), (["1", "3"], False), ([0, 1], False), (["bad", "good"], False)]
)
def test_numbers_in_a_row_are_steps_of_a_scale(cells, steps: bool) -> None:
    assert sorted_labels(cells).are_steps == steps


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (b"text,label\nhello you,a\nhello me,b\n", True),
        (b"hello there you and me,a\nhow are you today friend,b\nfine,a\n", False),
        (b"1,2\n3,4\n", False),
        (b"a,good\nb,good\na,bad\n", False),
    ],
)
def test_a_header_is_told_from_a_row(content: bytes, header: bool) -> None:
    assert detect(content, "rows.csv").reading["has_header"] == header


def test_bytes_that_are_no_western_text_are_given_no_encoding() -> None:
    russian = "текст;класс\nэто хорошо;да\n".encode("windows-1251")
    with pytest.raises(InvalidUpload):
        detect(russian, "rows.csv")


def test_a_folder_without_an_image_is_no_class() -> None:
    brought = raw_files.images()
    packed = io.BytesIO(brought.public)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("notes/readme.txt", "who took them")
    shape = detect(packed.getvalue(), "signs.zip", labelled=True).shape
    labels = labels_of(packed, "signs.zip", columns=["file"], reading={}, shape=shape, maximum_bytes=MOST)
    assert labels.classes == ["circle", "square"]


def test_more_values_than_classes_can_be_are_refused() -> None:
    with pytest.raises(InvalidUpload, match="more than 1,000"):
        sorted_labels([f"value {n}" for n in range(1001)])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("das ist nicht gut und die Post ist auch nicht da", "de"),
        ("je ne suis pas content et les frais sont pour vous", "fr"),
        ("qwer asdf", ""),
    ],
)
def test_the_language_is_that_of_most_short_words(text: str, code: str) -> None:
    assert language_of([text]) == code


@pytest.mark.parametrize("cell", ["[]", "nobody", '[["a", 1, "name"]]', '{"start": 0}'])
def test_a_column_is_of_spans_if_all_its_cells_are(cell):
    rows = [("text", "marked"), ("please call Olga now", '[[12, 16, "name"]]'), ("is nobody here today", cell)]
    found = detect(raw_files.lines(rows[0], rows[1:]), "a.csv", labelled=True)
    labels = labels_of(
        io.BytesIO(raw_files.lines(rows[0], rows[1:])),
        "a.csv",
        columns=["marked"],
        reading=found.reading,
        shape=found.shape,
        maximum_bytes=MOST,
    )
    assert labels.spans == (cell == "[]")
    assert not labels.spans or labels.classes == ["name"]
