import io

import pytest

from annotation.errors import ScannerAway
from annotation.work import scanning
from annotation.work.scanning import CHUNK_BYTES, Found
from tests.scanner import CLEAN, INFECTED, SmallScanner

DATA = bytes(range(256)) * (2 * CHUNK_BYTES // 256) + b"the rest"
EICAR_NAME = "Eicar-Test-Signature"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(scanning, "LISTEN_SECONDS", 0.05)


def ask(scanner, data=DATA, *, patience=30.0, check=lambda: None):
    return scanning.scan(scanner.url, io.BytesIO(data), patience_seconds=patience, check=check)


@pytest.mark.parametrize("data", [b"", b"a", DATA])
def test_the_scanner_gets_the_file_as_it_is(data):
    with SmallScanner(CLEAN) as scanner:
        assert ask(scanner, data) == Found()
    assert scanner.received == [data]


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([INFECTED], Found(name=EICAR_NAME)),
        ([bytes([each]) for each in INFECTED], Found(name=EICAR_NAME)),
        ([b"stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\0"], Found(too_large=True)),
        ([b"INSTREAM size limit exceeded. ERROR\0"], Found(too_large=True)),
        ([b"stream: <b>Odd\xff name</b> FOUND\0"], Found(name="?b?Odd??name?/b?")),
        ([b"stream: " + b"a" * 200 + b" FOUND\0"], Found(name="a" * 100)),
    ],
)
def test_what_it_says_is_understood(pieces, found):
    with SmallScanner(*pieces) as scanner:
        assert ask(scanner) == found


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"stream: OK"],
        [b"stream: O"],
        [b"OK\0"],
        [b"\0"],
        [b"stream: Can't allocate memory ERROR\0"],
        [b"UNKNOWN COMMAND\0"],
        [b"a" * 2000] * 40,
    ],
    ids=["nothing", "no end", "half", "another answer", "empty", "an error", "no such command", "no end at all"],
)
def test_no_clear_answer_is_none(pieces):
    with SmallScanner(*pieces) as scanner, pytest.raises(ScannerAway):
        ask(scanner)


def test_a_refusal_before_the_end_is_heard():
    """It reads no further then: what is still on its way is lost, and so may be the connection."""
    with SmallScanner(b"INSTREAM size limit exceeded. ERROR\0", takes=1) as scanner:
        assert ask(scanner, DATA * 8) == Found(too_large=True)


def test_silence_ends_in_time():
    with SmallScanner(keeps_silent=True) as scanner, pytest.raises(ScannerAway, match="does not answer"):
        ask(scanner, patience=0.5)
