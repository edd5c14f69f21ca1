"""Contributors by pseudonym."""

import hashlib

from django.conf import settings

PSEUDONYM_BYTES = 16


class Pseudonyms:
    """Names of contributors to keyed hashes: equal for one person, and without the key nobody can try names out."""

    def __init__(self) -> None:
        key = hashlib.sha256(settings.PSEUDONYM_KEY.encode()).digest()
        self._keyed = hashlib.blake2b(digest_size=PSEUDONYM_BYTES, key=key, person=b"contributor")

    def of(self, name: str | None) -> bytes | None:
        """Return 16 bytes for a name, None for none."""
        if name is None:
            return None
        hashed = self._keyed.copy()
        hashed.update(name.encode())
        return hashed.digest()
