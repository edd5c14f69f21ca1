"""The cyclic garbage collector kept out of loops that make rows by the million and no cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Leave the collector off until the end of the block.

    It runs once for every 700 containers that are made, and each row is several: it would look through all that lives
    some thousands of times in a large import and find nothing. What counting references frees is freed as ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
