"""A process that does a step with batches: the step on standard input, then batches; what it makes on standard output.

It is started by `privacy.engines.crew`. Its input's end, and so the end of whoever started it, however sudden, ends it.
Nothing private is on its command line, in its environment or in a file.
"""

import json
import os
import sys
from functools import cache
from typing import IO, Final

from privacy.engines.batches import BatchStep, batch_bytes, batch_of

SIZE_BYTES: Final = 8
MADE, FAILED = b"+", b"-"


def send_frame(stream: IO[bytes], content: bytes | memoryview) -> None:
    """Write some bytes after their number."""
    stream.write(len(content).to_bytes(SIZE_BYTES, "little"))
    stream.write(content)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """Return what `send_frame` wrote, or raise `EOFError` where the stream ends."""
    size = int.from_bytes(_exactly(stream, SIZE_BYTES), "little")
    return _exactly(stream, size)


def serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Answer each batch until nothing more comes; an error by its class alone, since its words may quote a row."""
    try:
        ready = cache(BatchStep(**json.loads(read_frame(orders))).ready)
        while True:
            content = read_frame(orders)
            try:
                made = batch_bytes(ready()(batch_of(content)))
            except Exception as error:  # noqa: BLE001 - told by its class
                answers.write(FAILED)
                send_frame(answers, type(error).__name__.encode())
            else:
                answers.write(MADE)
                send_frame(answers, made)
    except (EOFError, BrokenPipeError):
        return


def main() -> None:
    """Serve whoever started this process."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints is no answer.
    os.dup2(2, 1)
    serve(sys.stdin.buffer, answers)
    # Nobody reads what is still buffered.
    os._exit(0)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


if __name__ == "__main__":
    main()
