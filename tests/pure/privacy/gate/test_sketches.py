from collections import Counter

import numpy as np
import pytest
from datasketch import HyperLogLogPlusPlus
from hypothesis import given
from hypothesis import strategies as st

from privacy.gate.cardinality import Cardinality
from privacy.gate.count_min import LARGEST_COUNT, CountMinSketch
from privacy.gate.hashing import mix
from privacy.gate.membership import MembershipSketch
from privacy.gate.table import CountTable

BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=40), max_size=6)
MAKERS = {
    "count_min": lambda: CountMinSketch(7, 3),
    "wide_count_min": lambda: CountMinSketch(1 << 12, 2),
    "table": CountTable,
    "cardinality": lambda: Cardinality(5),
    "membership": lambda: MembershipSketch(256, 3),
}
ONE_SIDED = ("count_min", "wide_count_min", "table")


def words(keys):
    return mix(np.asarray(keys, dtype=np.uint64) + np.uint64(1))


def feed(sketch, batches):
    truth = Counter()
    for batch in batches:
        keys, counts = [pair[0] for pair in batch], [pair[1] for pair in batch]
        sketch.update(words(keys), np.array(counts, dtype=np.int64))
        truth.update(Counter(dict.fromkeys(keys, 0)))
        for key, count in batch:
            truth[key] += count
    return truth


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ONE_SIDED)
@given(batches=BATCHES, more=BATCHES)
def test_estimates_are_never_under_the_truth(name, batches, more):
    """Repeats inside a batch, many batches, and merging included."""
    sketch, other = MAKERS[name](), MAKERS[name]()
    truth = feed(sketch, batches)
    truth.update(feed(other, more))
    sketch.merge(other)
    keys = sorted(truth)
    estimates = sketch.estimate(words(keys))
    assert all(estimate >= truth[key] for estimate, key in zip(estimates.tolist(), keys, strict=True))
    assert sketch.total == sum(truth.values())


@given(batches=BATCHES)
def test_table_counts_exactly(batches):
    table = CountTable()
    truth = feed(table, batches)
    assert table.estimate(words(range(50))).tolist() == [truth[key] for key in range(50)]
    assert (len(table), table.nbytes) == (len(truth), 12 * len(truth))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MAKERS)
@given(batches=BATCHES, more=BATCHES)
def test_a_sketch_resumes_from_its_bytes(name, batches, more):
    sketch = MAKERS[name]()
    feed(sketch, batches)
    restored = type(sketch).from_bytes(sketch.to_bytes())
    feed(sketch, more)
    feed(restored, more)
    assert restored.to_bytes() == sketch.to_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_foreign_bytes_are_refused(name):
    sketch = MAKERS[name]()
    sketch.update(words([1, 2, 3]))
    with pytest.raises(ValueError, match="not the state"):
        type(sketch).from_bytes(sketch.to_bytes() + b"\0")


def test_conservative_update_beats_the_plain_one():
    """A plain count-min sketch adds every count to every row; here a counter rises only where it must."""
    rng = np.random.default_rng(3)
    sketch, plain, truth = CountMinSketch(64, 4), np.zeros((4, 64), dtype=np.int64), Counter()
    for _ in range(20):
        keys = np.unique(rng.integers(0, 300, size=200))
        hashes, counts = words(keys), rng.integers(1, 5, size=len(keys))
        sketch.update(hashes, counts)
        for row, place in zip(plain, sketch._places(hashes), strict=True):
            np.add.at(row, place, counts)
        truth.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
    keys = sorted(truth)
    true_counts = np.array([truth[key] for key in keys])
    plain_estimates = np.min(
        [row[place] for row, place in zip(plain, sketch._places(words(keys)), strict=True)], axis=0
    )
    surplus = (sketch.estimate(words(keys)) - true_counts).sum()
    assert 0 < surplus < 0.8 * (plain_estimates - true_counts).sum()


def test_sizing_keeps_its_stated_error():
    rng = np.random.default_rng(4)
    keys = rng.zipf(1.3, size=200_000) % 50_000
    distinct, counts = np.unique(keys, return_counts=True)
    sketch = CountMinSketch.for_error(len(keys), error=10, failure=0.02)
    sketch.update(words(distinct), counts)
    surplus = sketch.estimate(words(distinct)) - counts
    assert (surplus >= 0).all()
    assert (surplus > 10).mean() <= 0.02
    smaller = CountMinSketch(sketch.width // 64, sketch.depth)
    smaller.update(words(distinct), counts)
    assert (smaller.estimate(words(distinct)) - counts > 10).mean() > 0.02


def test_counters_do_not_wrap_around():
    for sketch in (CountMinSketch(8, 2), CountTable()):
        sketch.update(words([1]), np.array([LARGEST_COUNT]))
        before = sketch.to_bytes()
        with pytest.raises(OverflowError):
            sketch.update(words([1]), np.array([1]))
        with pytest.raises(OverflowError):
            sketch.merge(sketch)
        assert sketch.to_bytes() == before


@given(batches=BATCHES)
def test_registers_are_those_of_datasketch(batches):
    ours, theirs = Cardinality(6), HyperLogLogPlusPlus(p=6, hashfunc=int)
    feed(ours, batches)
    for batch in batches:
        for key, _ in batch:
            theirs.update(int(words([key])[0]))
    np.testing.assert_array_equal(ours.registers, theirs.reg)
    read_back = HyperLogLogPlusPlus.deserialize(bytearray(ours.to_bytes()))
    assert read_back == theirs
    assert ours.count() == read_back.count()


@given(batches=BATCHES)
def test_membership_forgets_nothing(batches):
    filled, seen = MembershipSketch(512, 4), set()
    for batch in batches:
        keys = [key for key, _ in batch]
        fresh = filled.update(words(keys))
        # What it calls new is new, and equal keys of one batch are called new once at most.
        called = [key for key, new in zip(keys, fresh, strict=True) if new]
        assert not seen & set(called)
        assert len(set(called)) == len(called)
        seen |= set(keys)
    assert filled.contains(words(sorted(seen))).all()


def test_membership_keeps_its_stated_error():
    filled = MembershipSketch.for_error(20_000, 0.01)
    filled.update(words(np.arange(20_000)))
    assert 0.005 < filled.contains(words(np.arange(20_000, 120_000))).mean() < 0.015
    other = MembershipSketch(filled.bits, filled.probes)
    other.update(words([500_000]))
    filled.merge(other)
    assert filled.contains(words([500_000])).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountMinSketch(0, 4),
        lambda: CountMinSketch(8, 17),
        lambda: CountMinSketch.for_error(10, 0),
        lambda: CountMinSketch.for_error(10, 1, failure=1),
        lambda: Cardinality(3),
        lambda: MembershipSketch(8),
        lambda: MembershipSketch(64, 0),
        lambda: MembershipSketch.for_error(9, 1.0),
        lambda: CountMinSketch(8, 2).merge(CountMinSketch(9, 2)),
        lambda: Cardinality(4).merge(Cardinality(5)),
        lambda: MembershipSketch(64).merge(MembershipSketch(128)),
        lambda: CountTable().update(words([1]), np.array([-1])),
        lambda: CountMinSketch(8, 2).update(words([1, 2]), np.array([1])),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ValueError):
        make()
