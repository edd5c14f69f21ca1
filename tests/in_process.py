"""Reading of files in the test's own process, where neither limits nor processes are what is tested."""

import contextlib
from collections.abc import Iterator

import pytest

from annotation.work import limits


@contextlib.contextmanager
def reading_here() -> Iterator[None]:
    """Start no process for each look at a file; a look at a small one takes fifty times as long in its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "_is_limited", True)
        yield
