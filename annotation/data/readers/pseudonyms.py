"""Keyed hashes of contributors' names."""

import hashlib
from collections.abc import Sequence

import pyarrow as pa

PSEUDONYM_BYTES = 16


class Pseudonyms:
    """Keyed hashes of contributors' names: equal for one person, and not to be tried out without the 32-byte key."""

    def __init__(self, key: bytes) -> None:
        self._keyed = hashlib.blake2b(digest_size=PSEUDONYM_BYTES, key=key, person=b"contributor")

    def of(self, name: str | None) -> bytes | None:
        if name is None:
            return None
        hashed = self._keyed.copy()
        hashed.update(name.encode())
        return hashed.digest()


def people_of(names: Sequence[str | None] | None, pseudonyms: Pseudonyms) -> pa.Array | None:
    if names is None:
        return None
    # Few people bring many rows, and each is hashed once a batch.
    named = pa.array(names, pa.large_string()).dictionary_encode()
    people = pa.array([pseudonyms.of(name) for name in named.dictionary.to_pylist()], pa.binary(PSEUDONYM_BYTES))
    return people.take(named.indices)
