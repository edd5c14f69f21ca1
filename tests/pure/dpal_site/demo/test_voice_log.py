from collections import Counter

import numpy as np
import pytest

from annotation.data.readers.digests import text_digests
from dpal_site.demo import voice_log

KNOWN = voice_log.known_sentences()


@pytest.fixture(scope="module")
def log() -> voice_log.VoiceLog:
    return voice_log.draw_voice_log(list(KNOWN), contributors=4000, rng=np.random.default_rng(5))


def test_few_sentences_are_said_often_and_most_once(log):
    counts = Counter(log.texts)
    assert len(log.texts) == len(log.contributors)
    assert sum(count == 1 for count in counts.values()) > 0.8 * len(counts)
    assert {text for text, count in counts.items() if count > 1} <= KNOWN.keys()
    often = sorted((counts[text] for text in KNOWN), reverse=True)
    assert often[0] > 3 * often[-1]


def test_the_public_test_set_says_things_nobody_says_in_the_log(log):
    texts, labels = voice_log.public_test_set(rng=np.random.default_rng(6))
    assert Counter(labels) == dict.fromkeys(range(12), 18)
    key = bytes(16)
    assert not np.isin(text_digests(texts, key=key), text_digests(log.texts, key=key)).any()
    assert not voice_log.known_sentences(tested=True).keys() & KNOWN.keys()
    written = {example for topic in voice_log.SAYINGS.values() for example in topic["examples"]}
    assert not written & (KNOWN.keys() | set(texts))
