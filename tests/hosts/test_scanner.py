import io
import zipfile

import pytest
from PIL import Image

from annotation.work import scanning
from annotation.work.scanning import Found
from tests.scanner import EICAR, RealScanner

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
LIMIT_BYTES, FILES = 2**20, 20
VIRUS = Found(name="Eicar-Test-Signature.UNOFFICIAL")


@pytest.fixture(scope="module")
def scanner(tmp_path_factory):
    started = RealScanner(tmp_path_factory.mktemp("scanner") / "clamd", files=FILES)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def ask(scanner, data):
    return scanning.scan(scanner.url, io.BytesIO(data), patience_seconds=60, check=lambda: None)


def zipped(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def picture():
    file = io.BytesIO()
    Image.new("L", (28, 28), 200).save(file, "PNG")
    return file.getvalue()


def test_it_lives(scanner):
    assert scanning.scanner_listens(scanner.url)


@pytest.mark.parametrize("data", [b"", b"text\nwhat is the weather\n", picture(), zipped(a=picture(), b=picture())])
def test_what_is_clean_passes(scanner, data):
    assert ask(scanner, data) == Found()


@pytest.mark.parametrize(
    "data",
    [EICAR, b"text\n" + EICAR + b"\n", zipped(a=picture(), b=EICAR), zipped(a=zipped(b=zipped(c=EICAR)))],
    ids=["alone", "in a table", "among images", "three archives deep"],
)
def test_what_it_knows_is_found(scanner, data):
    assert ask(scanner, data) == VIRUS


@pytest.mark.parametrize("bytes_more", [1, 40 * LIMIT_BYTES])
def test_more_than_it_takes_is_said_so(scanner, bytes_more):
    assert ask(scanner, b"a" * (LIMIT_BYTES + bytes_more)) == Found(too_large=True)


def test_an_archive_with_more_in_it_than_it_reads_does_not_pass(scanner):
    many = {f"file{number}": b"clean" * 10 for number in range(FILES)}
    assert ask(scanner, zipped(**many, last=EICAR)) == Found(too_large=True)


def test_it_goes_away_and_comes_back(scanner):
    scanner.stop()
    assert not scanning.scanner_listens(scanner.url)
    scanner.start()
    assert ask(scanner, EICAR) == VIRUS
