"""Keyed 64-bit hashes of texts: SipHash over whole Arrow arrays."""

import hashlib
from typing import Final

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from privacy.mechanisms.randomness import SecureRandom

KEY_BYTES: Final = 16
# Longer texts would be stepped through eight bytes at a time almost alone; BLAKE2b reads them faster.
LONGEST_SIPHASH: Final = 1024
# Four state words and a scratch word of a chunk stay in the second-level cache.
CHUNK_TEXTS: Final = 8192

_START: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_BYTE_MASKS: Final = np.array([(1 << 8 * n) - 1 for n in range(8)], dtype=np.uint64)
_ROTATIONS: Final = {r: (np.uint64(r), np.uint64(64 - r)) for r in (13, 16, 17, 21, 32)}

Words = NDArray[np.uint64]


def hash_texts(texts: pa.Array, *, key: bytes) -> Words:
    """Hash every text: SipHash-1-3, or keyed BLAKE2b for texts of more than 1024 bytes.

    Parameters
    ----------
    texts : pyarrow.Array of string, large_string, binary or large_binary, length n
        Without null. Hash the distinct texts of a batch, not its rows.
    key : bytes
        16 secret bytes: without them nobody can choose texts that collide.

    Returns
    -------
    ndarray of uint64, shape (n,)

    References
    ----------
    .. [1] Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012.
    """
    if texts.null_count:
        raise ValueError(f"texts must not be null, got {texts.null_count} nulls")
    data, offsets = text_bytes(texts)
    lengths = np.diff(offsets)
    if not lengths.size or int(lengths.max()) <= LONGEST_SIPHASH:
        return siphash(data, offsets, key=key)
    long = np.flatnonzero(lengths > LONGEST_SIPHASH)
    # The long ones are hashed as if empty first, and then written over.
    hashes = siphash(data, offsets, key=key, limit=LONGEST_SIPHASH)
    for row in long:
        digest = hashlib.blake2b(data[offsets[row] : offsets[row + 1]].tobytes(), key=key, digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def text_bytes(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    wide = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
    texts = texts.cast(pa.large_string() if wide else pa.large_binary())
    _, offset_buffer, data_buffer = texts.buffers()
    if offset_buffer is None:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, dtype=np.uint8) if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)
    return data, offsets


def siphash(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    *,
    key: bytes,
    compressions: int = 1,
    finalizations: int = 3,
    limit: int | None = None,
) -> Words:
    """Return SipHash-c-d of many messages, shape (n,); message i is ``data[offsets[i]:offsets[i + 1]]``.

    The key has 16 bytes; `compressions` and `finalizations` are rounds for each word and at the end: 1 and 3, or 2 and
    4. Messages of more bytes than `limit` are taken as empty.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"key must have {KEY_BYTES} bytes, got {len(key)}")
    starts, lengths = offsets[:-1], np.diff(offsets)
    if limit is not None:
        lengths = np.where(lengths > limit, 0, lengths)
    # A word is read from any byte on, so seven bytes must follow the last one.
    padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
    words = np.lib.stride_tricks.as_strided(padded[:8].view("<u8"), shape=(len(data) + 1,), strides=(1,))
    hashes = np.empty(len(starts), dtype=np.uint64)
    for first in range(0, len(starts), CHUNK_TEXTS):
        part = slice(first, first + CHUNK_TEXTS)
        hashes[part] = _hash_chunk(words, starts[part], lengths[part], key, compressions, finalizations)
    return hashes


def _hash_chunk(
    words: Words, starts: NDArray[np.int64], lengths: NDArray[np.int64], key: bytes, compressions: int, final: int
) -> Words:
    # Longest first: at every step the messages that still have a word are the leading ones.
    order = np.argsort(-(lengths >> 3), kind="stable")
    starts, lengths = starts[order], lengths[order]
    full_words = lengths >> 3
    halves = np.frombuffer(key, dtype="<u8")
    state = [np.full(len(starts), np.uint64(word) ^ halves[i % 2]) for i, word in enumerate(_START)]
    scratch = np.empty_like(state[0])
    for step in range(int(full_words[0]) if len(starts) else 0):
        active = int(np.searchsorted(-full_words, -step, side="left"))
        message = words[starts[:active] + 8 * step]
        leading = [word[:active] for word in state]
        _absorb(leading, message, compressions, scratch[:active])
    rest = lengths & 7
    last = words[starts + 8 * full_words] & _BYTE_MASKS[rest]
    last |= lengths.astype(np.uint64) << np.uint64(56)
    _absorb(state, last, compressions, scratch)
    state[2] ^= np.uint64(0xFF)
    for _ in range(final):
        _round(state, scratch)
    hashes = np.empty_like(scratch)
    hashes[order] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return hashes


def _absorb(state: list[Words], message: Words, rounds: int, scratch: Words) -> None:
    state[3] ^= message
    for _ in range(rounds):
        _round(state, scratch)
    state[0] ^= message


def _round(state: list[Words], scratch: Words) -> None:
    a, b, c, d = state
    a += b
    _rotate(b, 13, scratch)
    b ^= a
    _rotate(a, 32, scratch)
    c += d
    _rotate(d, 16, scratch)
    d ^= c
    a += d
    _rotate(d, 21, scratch)
    d ^= a
    c += b
    _rotate(b, 17, scratch)
    b ^= c
    _rotate(c, 32, scratch)


def _rotate(words: Words, bits: int, scratch: Words) -> None:
    left, right = _ROTATIONS[bits]
    np.left_shift(words, left, out=scratch)
    np.right_shift(words, right, out=words)
    np.bitwise_or(words, scratch, out=words)


def mix(hashes: Words) -> Words:
    """Return a fixed permutation of 64-bit words that spreads every bit over all others (SplitMix64)."""
    mixed = hashes ^ (hashes >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def pair_hashes(first: Words, second: Words) -> Words:
    return mix(mix(first) + second)


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
