import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.gate.hashing import hash_texts, mix, pair_hashes, siphash, text_bytes

KEY = bytes(range(16))
MESSAGES = [bytes(range(length)) for length in range(64)]
# Outputs of the authors' reference program for KEY and messages 00 01 02 ..., by message length.
SIPHASH_2_4 = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
    16: 0x3F2ACC7F57C29BDB,
    31: 0x32D892FAD841C342,
    63: 0x958A324CEB064572,
}
SIPHASH_1_3 = {
    0: 0xABAC0158050FC4DC,
    1: 0xC9F49BF37D57CA93,
    2: 0x82CB9B024DC7D44D,
    3: 0x8BF80AB8E7DDF7FB,
    4: 0xCF75576088D38328,
    5: 0xDEF9D52F49533B67,
    6: 0xC50D2B50C59F22A7,
    7: 0xD3927D989BB11140,
    8: 0x369095118D299A8E,
    9: 0x25A48EB36C063DE4,
    15: 0xD320D86D2A519956,
    16: 0xCC4FDD1A7D908B66,
    31: 0x2370DD1F8C21D1BC,
    32: 0x81157B6C16A7B60D,
    60: 0xF6F4E6BCF7A644EE,
    63: 0x9D199062B7BBB3A8,
}
INTERPRETER = "import sys; print(*(hash(bytes.fromhex(line.strip())) % 2**64 for line in sys.stdin))"


@pytest.mark.parametrize(("rounds", "published"), [((2, 4), SIPHASH_2_4), ((1, 3), SIPHASH_1_3)])
def test_published_vectors(rounds, published):
    data, offsets = text_bytes(pa.array(MESSAGES, pa.binary()))
    hashes = siphash(data, offsets, key=KEY, compressions=rounds[0], finalizations=rounds[1])
    assert {length: int(hashes[length]) for length in published} == published


def test_the_interpreter_hashes_the_same():
    """CPython hashes bytes by SipHash-1-3, under an all-zero key where PYTHONHASHSEED is 0."""
    assert sys.hash_info.algorithm == "siphash13"
    rng = np.random.default_rng(7)
    messages = [rng.bytes(length) for length in rng.integers(1, 300, size=500)]
    answer = subprocess.run(
        [sys.executable, "-c", INTERPRETER],
        input="\n".join(message.hex() for message in messages),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    ours = hash_texts(pa.array(messages, pa.binary()), key=bytes(16))
    assert ours.tolist() == [int(word) for word in answer.stdout.split()]


@given(texts=st.lists(st.text(max_size=40), max_size=30), cut=st.integers(0, 9))
def test_a_hash_does_not_depend_on_its_neighbours(texts, cut):
    alone = [int(hash_texts(pa.array([text]), key=KEY)[0]) for text in texts[cut:]]
    for text_type in (pa.string(), pa.large_string()):
        assert hash_texts(pa.array(texts, text_type).slice(cut), key=KEY).tolist() == alone


def test_refusals():
    with pytest.raises(ValueError, match="16 bytes, got 8"):
        hash_texts(pa.array(["a"]), key=KEY[:8])
    with pytest.raises(ValueError, match="got 1 nulls"):
        hash_texts(pa.array(["a", None]), key=KEY)
    assert hash_texts(pa.array([], pa.string()), key=KEY).shape == (0,)


def test_mixing_is_a_permutation_that_tells_pairs_apart():
    words = np.arange(1 << 16, dtype=np.uint64)
    assert len(np.unique(mix(words))) == len(words)
    first, second = words[:300, None], words[None, :300]
    pairs = pair_hashes(*(np.broadcast_to(part, (300, 300)).ravel() for part in (first, second)))
    assert len(np.unique(pairs)) == 300 * 300
