"""Secret coins and ranks: a keyed stream of words, one for every place in the records."""

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

COIN_RESOLUTION: Final = 2**32
MINIMUM_KEY_BYTES: Final = 16
BLOCK_WORDS: Final = 2**12


def check_key(key: bytes) -> None:
    """Refuse keys that could be guessed."""
    if len(key) < MINIMUM_KEY_BYTES:
        raise ValueError(f"key must have at least {MINIMUM_KEY_BYTES} bytes, got {len(key)}")


def coins(key: bytes, *, first: int, count: int, threshold: int) -> NDArray[np.bool_]:
    """Flip the coins of `count` places from `first` on, each shown with probability threshold / 2**32."""
    shown: NDArray[np.bool_] = secret_words(key, b"coin", first=first, count=count) < np.uint32(threshold)
    return shown


def secret_words(key: bytes, purpose: bytes, *, first: int, count: int) -> NDArray[np.uint32]:
    """Return 32-bit words number `first` to `first + count - 1` of a keyed pseudorandom stream.

    Word i is a function of key, purpose and i alone: SHAKE-256 of the key and the number of a block
    of words, read in counter mode. Nothing in the data can choose its coin.
    """
    if count == 0:
        return np.empty(0, dtype=np.uint32)
    first_block, last_block = first // BLOCK_WORDS, (first + count - 1) // BLOCK_WORDS
    seed = hashlib.shake_256(_header(key, purpose))
    blocks = []
    for block in range(first_block, last_block + 1):
        stream = seed.copy()
        stream.update(block.to_bytes(8, "big"))
        blocks.append(stream.digest(4 * BLOCK_WORDS))
    start = first - first_block * BLOCK_WORDS
    return np.frombuffer(b"".join(blocks), dtype="<u4")[start : start + count].astype(np.uint32, copy=False)


def hash_key(key: bytes) -> bytes:
    """Return the key under which texts and contributors are hashed; the coins cannot be told from it."""
    return hashlib.shake_256(_header(key, b"hash")).digest(16)


def share_key(key: bytes) -> bytes:
    """Return the key of the hashes that choose a worker's share; another one, so that shares can be cut once more."""
    return hashlib.shake_256(_header(key, b"share")).digest(16)


def _header(key: bytes, purpose: bytes) -> bytes:
    return len(key).to_bytes(4, "big") + key + len(purpose).to_bytes(4, "big") + purpose
