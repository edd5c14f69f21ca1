"""Contributors by pseudonym."""

import hashlib

PSEUDONYM_BYTES = 16


class Pseudonyms:
    """Names of contributors to keyed hashes: equal for one person, and without the key nobody can try names out.

    Parameters
    ----------
    key : bytes
        32 bytes: of the site, or of one registered table.
    """

    def __init__(self, key: bytes) -> None:
        self._keyed = hashlib.blake2b(digest_size=PSEUDONYM_BYTES, key=key, person=b"contributor")

    def of(self, name: str | None) -> bytes | None:
        """Return 16 bytes for a name, None for none."""
        if name is None:
            return None
        hashed = self._keyed.copy()
        hashed.update(name.encode())
        return hashed.digest()
