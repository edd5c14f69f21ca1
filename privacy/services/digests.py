"""Digests of what must stay secret: keyed, so that nobody outside can hold guesses against them."""

import hashlib
import hmac

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

PURPOSE = b"dpal ledger digest\0"


def keyed_digest(ids: NDArray[np.int64], *, of: str) -> str:
    """Return an HMAC-SHA256 of ids in their order, in hexadecimal, under a key that only this site has.

    The ledger shows it to engineers and auditors. A plain SHA-256 of a few ids is found by trying all of them; this one
    is checked by whoever holds `PSEUDONYM_KEY`, and by nobody else. `of` names what was chosen, so that two choices of
    the same ids do not show that they are the same.
    """
    return _keyed(PURPOSE + of.encode() + b"\0" + np.ascontiguousarray(ids, dtype="<i8").tobytes())


def _keyed(message: bytes) -> str:
    if not settings.PSEUDONYM_KEY:
        raise ValueError("a digest of what is secret needs PSEUDONYM_KEY, which this process does not have")
    return hmac.new(settings.PSEUDONYM_KEY.encode(), message, hashlib.sha256).hexdigest()
