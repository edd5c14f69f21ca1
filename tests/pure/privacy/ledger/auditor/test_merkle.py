import hashlib

import pytest

from privacy.ledger.auditor.merkle import (
    EMPTY_ROOT,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

# Inputs, roots and proofs of the reference implementation's tests (google/certificate-transparency, merkle_tree_test).
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
SECOND_TWO = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e"
FIFTH = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"
SECOND = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"
LAST_FOUR = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
LAST_TWO = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
THIRD_TWO = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
# By number of the leaf from 0, and size of the tree.
INCLUSIONS = {
    (0, 1): [],
    (0, 8): [SECOND, SECOND_TWO, LAST_FOUR],
    (5, 8): [FIFTH, LAST_TWO, ROOTS[3]],
    (2, 3): [ROOTS[1]],
    (1, 5): [ROOTS[0], SECOND_TWO, FIFTH],
}
# By size before and after.
GROWTHS = {
    (1, 1): [],
    (1, 8): [SECOND, SECOND_TWO, LAST_FOUR],
    (6, 8): [THIRD_TWO, LAST_TWO, ROOTS[3]],
    (2, 5): [SECOND_TWO, FIFTH],
}


def leaves_of(number: int) -> list[bytes]:
    return [leaf_hash(str(each).encode()) for each in range(number)]


def test_roots_and_proofs_are_those_of_certificate_transparency() -> None:
    leaves = [leaf_hash(bytes.fromhex(each)) for each in INPUTS]
    assert root_of([]).hex() == hashlib.sha256().hexdigest() == EMPTY_ROOT.hex()
    assert [root_of(leaves[:size]).hex() for size in range(1, 9)] == ROOTS
    for (index, size), hashes in INCLUSIONS.items():
        assert [each.hex() for each in inclusion_proof(leaves[:size], index)] == hashes
    for (old, size), hashes in GROWTHS.items():
        assert [each.hex() for each in consistency_proof(leaves[:size], old)] == hashes


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 64, 100])
def test_every_leaf_has_a_proof(size: int) -> None:
    leaves = leaves_of(size)
    root = root_of(leaves)
    for index in range(size):
        assert verify_inclusion(leaves[index], index, size, inclusion_proof(leaves, index), root)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13])
def test_a_wrong_inclusion_is_refused(size: int) -> None:
    leaves = leaves_of(size)
    root = root_of(leaves)
    for index in range(size):
        proof = inclusion_proof(leaves, index)
        for other in {*range(size + 1)} - {index}:
            assert not verify_inclusion(leaves[index], other, size, proof, root)
        assert not verify_inclusion(leaf_hash(b"another"), index, size, proof, root)
        assert not verify_inclusion(leaves[index], index, size, [*proof, root], root)
        assert not verify_inclusion(leaves[index], index, size, proof, leaf_hash(b"another"))
        for place in range(len(proof)):
            assert not verify_inclusion(leaves[index], index, size, proof[:place] + proof[place + 1 :], root)
            changed = [*proof[:place], node_hash(proof[place], b""), *proof[place + 1 :]]
            assert not verify_inclusion(leaves[index], index, size, changed, root)


def test_every_growth_has_a_proof_and_no_fork_has_one() -> None:
    leaves = leaves_of(33)
    for size in range(34):
        root = root_of(leaves[:size])
        for old in range(size + 1):
            proof = consistency_proof(leaves[:size], old)
            before = root_of(leaves[:old])
            assert verify_consistency(old, before, size, root, proof)
            if old > 0:
                forked = [*leaves[: old - 1], leaf_hash(b"rewritten"), *leaves[old:size]]
                assert not verify_consistency(old, before, size, root_of(forked), consistency_proof(forked, old))
                assert not verify_consistency(old, leaf_hash(b"other"), size, root, proof)
            if 0 < old < size:
                assert not verify_consistency(old, before, size, root, proof[:-1])
                assert not verify_consistency(old, before, size, root, [*proof, root])
                assert not verify_consistency(size, root, old, before, proof)


@pytest.mark.parametrize(("size", "index"), [(0, 0), (3, 3), (3, -1)])
def test_what_is_not_there_has_no_proof(size: int, index: int) -> None:
    with pytest.raises(ValueError, match="index"):
        inclusion_proof(leaves_of(size), index)
    with pytest.raises(ValueError, match="size"):
        consistency_proof(leaves_of(size), size + 1)
    assert not verify_inclusion(leaf_hash(b""), index, size, [], EMPTY_ROOT)
