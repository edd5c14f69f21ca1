"""The generated log has the shape it claims, and nothing in the public test set comes from it."""

from collections import Counter

import numpy as np
import pytest

from dpal_site.demo import voice_log

KNOWN = voice_log.known_sentences()


@pytest.fixture(scope="module")
def log() -> voice_log.VoiceLog:
    return voice_log.draw_log(list(KNOWN), contributors=4000, rng=np.random.default_rng(5))


def test_both_classes_have_as_many_sentences():
    assert Counter(KNOWN.values()) == {0: 240, 1: 240}


def test_few_sentences_are_said_often_and_most_once(log):
    counts = Counter(log.texts)
    assert len(log.texts) == len(log.contributors)
    assert sum(count == 1 for count in counts.values()) > 0.8 * len(counts)
    assert {text for text, count in counts.items() if count > 1} <= KNOWN.keys()
    often = sorted((counts[text] for text in KNOWN), reverse=True)
    assert often[0] > 3 * often[-1]


def test_everybody_speaks_and_some_speak_much(log):
    lines = Counter(log.contributors)
    assert len(lines) == 4000
    assert min(lines.values()) >= 2
    assert max(lines.values()) >= 20


def test_shares_fall_with_rank_and_add_up():
    shares = voice_log.zipf_mandelbrot(100)
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) < 0).all()


def test_the_public_test_set_is_labelled_by_the_sentences_it_was_made_of():
    texts, labels = voice_log.public_test_set(size=200, rng=np.random.default_rng(6))
    assert len(texts) == len(labels) == 200
    for text, label in zip(texts, labels, strict=True):
        assert any(sentence in text and known == label for sentence, known in KNOWN.items())
