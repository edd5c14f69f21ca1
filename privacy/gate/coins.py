"""Secret coins and ranks: a keyed stream of words, one for every place in the records."""

import hashlib
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from privacy.mechanisms.randomness import SecureRandom

COIN_RESOLUTION: Final = 2**32
MINIMUM_KEY_BYTES: Final = 16
# Words in a block of the cipher.
BLOCK_WORDS: Final = 4
ZEROS: Final = memoryview(bytes(2**16))


def new_key() -> bytes:
    """Draw 32 secret bytes for the coins of one gate run."""
    return SecureRandom().words(4).tobytes()


def check_key(key: bytes) -> None:
    if len(key) < MINIMUM_KEY_BYTES:
        raise ValueError(f"key must have at least {MINIMUM_KEY_BYTES} bytes, got {len(key)}")


def coins(key: bytes, *, first: int, count: int, threshold: int) -> NDArray[np.bool_]:
    shown: NDArray[np.bool_] = secret_words(key, b"coin", first=first, count=count) < np.uint32(threshold)
    return shown


def secret_words(key: bytes, purpose: bytes, *, first: int, count: int) -> NDArray[np.uint32]:
    """Return 32-bit words number `first` to `first + count - 1` of a keyed pseudorandom stream.

    Word i is a function of key, purpose and i alone: AES-256 in counter mode, under a key that SHAKE-256 makes of
    both, four words a block. Nothing in the data can choose its coin.
    """
    block, skipped = divmod(first, BLOCK_WORDS)
    secret = hashlib.shake_256(_header(key, purpose)).digest(32)
    stream = Cipher(AES(secret), CTR(block.to_bytes(16, "big"))).encryptor()
    size = 4 * (skipped + count)
    # The cipher wants room for the rest of a block behind what it writes.
    written = np.empty(size + 4 * BLOCK_WORDS, dtype=np.uint8)
    room = written.data
    for start in range(0, size, len(ZEROS)):
        stream.update_into(ZEROS[: size - start], room[start:])
    return written[:size].view("<u4")[skipped:].astype(np.uint32, copy=False)


def hash_key(key: bytes) -> bytes:
    """Return the key under which texts and contributors are hashed; the coins cannot be told from it."""
    return hashlib.shake_256(_header(key, b"hash")).digest(16)


def share_key(key: bytes) -> bytes:
    """Return the key of the hashes that choose a worker's share; another one, so that shares can be cut once more."""
    return hashlib.shake_256(_header(key, b"share")).digest(16)


def _header(key: bytes, purpose: bytes) -> bytes:
    return len(key).to_bytes(4, "big") + key + len(purpose).to_bytes(4, "big") + purpose
