"""Keyed hashes of contributors' names."""

import hashlib

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
