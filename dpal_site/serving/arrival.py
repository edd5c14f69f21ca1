"""How much of an HTTP/1.1 request has arrived, read from its bytes alone."""

import re
from enum import Enum

END_OF_HEAD = b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
# Whoever says one of these sends a body that is not counted here, or waits for a word before sending it.
UNCOUNTED = (b"transfer-encoding", b"expect", b"upgrade")
MOST_HEAD_BYTES = 64 * 1024
# A form, a label, a question to the API; what is longer waits for a thread of its own.
MOST_BODY_BYTES = 128 * 1024


class ConnectionInput(Enum):
    """What a connection has brought so far."""

    NOTHING = "nothing"
    PART = "part"
    TOO_LONG = "a head beyond every measure"
    WHOLE = "all of a request that is short"
    LONG = "the head of a request whose body is long, or of unknown length"


def arrived(brought: bytes | bytearray) -> ConnectionInput:
    """Say what has arrived; only where nothing more can come is it all of a request.

    The server's own reader decides what a request is. This one is asked whether that reader would wait for more, so
    whatever it is not sure of counts as long.
    """
    if not brought:
        return ConnectionInput.NOTHING
    end = brought.find(END_OF_HEAD)
    if end < 0:
        return ConnectionInput.TOO_LONG if len(brought) > MOST_HEAD_BYTES else ConnectionInput.PART
    head = bytes(brought[: end + 2]).lower()
    if any(word in head for word in UNCOUNTED):
        return ConnectionInput.LONG
    if b"content-length" not in head:
        return ConnectionInput.WHOLE
    lengths = LENGTH.findall(head)
    if len(lengths) != 1 or head.count(b"content-length") != 1 or int(lengths[0]) > MOST_BODY_BYTES:
        return ConnectionInput.LONG
    return ConnectionInput.WHOLE if len(brought) >= end + len(END_OF_HEAD) + int(lengths[0]) else ConnectionInput.PART
