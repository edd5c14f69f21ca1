"""Merkle trees of RFC 6962: the root of a log, and short proofs that an entry or an earlier log is part of it."""

# [1] Laurie, Langley, Kasper, "Certificate Transparency", RFC 6962, section 2.1.
# [2] Laurie, Messeri, Stradling, "Certificate Transparency Version 2.0", RFC 9162, sections 2.1.3.2 and 2.1.4.2.

import hashlib
from collections.abc import Iterator, Sequence

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf; it can never be that of a node."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaf hashes; time linear in their number."""
    level = list(leaves)
    while len(level) > 1:
        level = _level_above(level)
    return level[0] if level else EMPTY_ROOT


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from leaf `index` to the root."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"index must lie in [0, {len(leaves)}), got {index}")
    proof, level = [], list(leaves)
    while len(level) > 1:
        sibling = index ^ 1
        # The last of an odd level moves up alone.
        if sibling < len(level):
            proof.append(level[sibling])
        level, index = _level_above(level), index >> 1
    return proof


def consistency_proof(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """Return the hashes that show the tree of the first `size` leaves to be the beginning of this one."""
    if not 0 <= size <= len(leaves):
        raise ValueError(f"size must lie in [0, {len(leaves)}], got {size}")
    return [] if size in (0, len(leaves)) else list(_subproof(leaves, size, whole=True))


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root


def verify_consistency(old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]) -> bool:
    if old_size == size:
        return not proof and old_root == root
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    if not 0 < old_size < size:
        return False
    hashes = list(proof)
    if old_size & (old_size - 1) == 0:
        # A whole subtree: the old root itself begins the proof.
        hashes.insert(0, old_root)
    if not hashes:
        return False
    node, last = old_size - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    found_old = found = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            found_old, found = node_hash(sibling, found_old), node_hash(sibling, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and found_old == old_root and found == root


def _level_above(level: Sequence[bytes]) -> list[bytes]:
    above = [node_hash(level[left], level[left + 1]) for left in range(0, len(level) - 1, 2)]
    return [*above, level[-1]] if len(level) & 1 else above


def _subproof(leaves: Sequence[bytes], size: int, *, whole: bool) -> Iterator[bytes]:
    if size == len(leaves):
        if not whole:
            yield root_of(leaves)
        return
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= half:
        yield from _subproof(leaves[:half], size, whole=whole)
        yield root_of(leaves[half:])
    else:
        yield from _subproof(leaves[half:], size - half, whole=False)
        yield root_of(leaves[:half])
