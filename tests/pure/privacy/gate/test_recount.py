import os
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.gate import recount
from privacy.gate.count_min import CountMinSketch
from privacy.gate.hashing import hash_texts
from privacy.gate.reading import COUNTS
from privacy.gate.recount import frequent_texts, prefilter, sized_counts, summing
from privacy.gate.spill import LARGEST_SHARES, BoundedRows, Spill
from privacy.gate.table import BYTES_PER_KEY, CountTable

KEY = bytes(range(16))
PARTS = st.lists(st.lists(st.tuples(st.text("abcd", max_size=3), st.integers(1, 9)), max_size=20), max_size=8)


def table_of(pairs):
    return pa.table([[text for text, _ in pairs], [count for _, count in pairs]], schema=COUNTS)


def hash_rows(table):
    return hash_texts(table["text"].combine_chunks(), key=KEY)


def total_of(parts):
    counts = Counter()
    for part in parts:
        for text, count in part:
            counts[text] += count
    return counts


@given(parts=PARTS, minimum=st.integers(1, 30), memory=st.sampled_from([50, 400, 2**20]))
def test_sums_are_exact_whatever_the_memory(parts, minimum, memory):
    shares = list(frequent_texts(map(table_of, parts), minimum=minimum, key=KEY, memory_bytes=memory))
    found = [pair for share in shares for pair in zip(*share.to_pydict().values(), strict=True)]
    assert len(dict(found)) == len(found)
    assert dict(found) == {text: count for text, count in total_of(parts).items() if count >= minimum}


@pytest.mark.slow
@given(parts=PARTS, minimum=st.integers(2, 30), memory=st.sampled_from([50, 400]))
def test_exact_counts_decide_where_the_sketch_lets_everything_through(parts, minimum, memory):
    """A sketch of one cell takes every text for frequent; behind it nothing below the minimum comes out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recount, "sized_counts", lambda *_, **__: CountMinSketch(1, 1))
        shares = list(frequent_texts(map(table_of, parts), minimum=minimum, key=KEY, memory_bytes=memory))
    found = dict(pair for share in shares for pair in zip(*share.to_pydict().values(), strict=True))
    assert found == {text: count for text, count in total_of(parts).items() if count >= minimum}


def test_rare_texts_stay_inside_when_they_collide_with_frequent_ones():
    """Forty frequent texts among twenty thousand rare ones, in less memory than they need, ahead of a real sketch."""
    frequent = {f"open the door {number}": 30 for number in range(40)}
    parts = [
        table_of([(f"what only {number} said", 1 + number % 9) for number in range(start, start + 500)])
        for start in range(0, 20_000, 500)
    ] + [table_of(list(frequent.items()))]
    with pytest.MonkeyPatch.context() as patch:
        # Sized for a tenth of the counts it is given, so that many a rare text looks frequent.
        patch.setattr(
            recount, "sized_counts", lambda distinct, total, **how: CountMinSketch.for_error(total // 10, **how)
        )
        shares = list(frequent_texts(parts, minimum=10, key=KEY, memory_bytes=50_000))
    found = dict(pair for share in shares for pair in zip(*share.to_pydict().values(), strict=True))
    assert found == frequent


@pytest.mark.slow
@given(rows=st.lists(st.tuples(st.text(max_size=3), st.integers(1, 9)), max_size=40), skipped=st.integers(0, 5))
def test_sums_are_exact_in_however_many_parts(rows, skipped):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recount, "CACHED_ROWS", 4)
        summed = summing(table_of(rows).slice(skipped))
    counts = total_of([rows[skipped:]])
    assert summed.num_rows == len(counts)
    assert dict(zip(*summed.to_pydict().values(), strict=True)) == counts


@given(parts=PARTS, minimum=st.integers(2, 30))
def test_bounds_ahead_are_never_under_the_counts(parts, minimum):
    spill = Spill()
    for part in parts:
        table = summing(table_of(part))
        spill.append(table.append_column("hash", pa.array(hash_rows(table))))
    bounds, distinct = prefilter(spill, minimum)
    counts = total_of(parts)
    estimates = bounds.estimate(hash_texts(pa.array(list(counts), pa.string()), key=KEY))
    assert all(estimate >= count for estimate, count in zip(estimates.tolist(), counts.values(), strict=True))
    assert distinct == pytest.approx(len(counts), abs=1)


def spilled(n_texts, memory):
    rows = BoundedRows(merge=summing, hash_rows=hash_rows, memory_bytes=memory)
    for start in range(0, n_texts, 100):
        rows.add(table_of([(f"text {number}", 1) for number in range(start, start + 100)]))
    return rows


def test_shares_are_disjoint_whole_and_small():
    rows = spilled(20_000, 100_000)
    shares = list(rows.shares())
    assert 2 < len(shares) < LARGEST_SHARES
    assert sum(share.num_rows for share in shares) == 20_000
    assert len({text for share in shares for text in share["text"].to_pylist()}) == 20_000
    assert max(share.nbytes for share in shares) < 1.5 * 100_000


@pytest.mark.slow
def test_the_file_is_read_a_bounded_number_of_times():
    assert len(list(spilled(20_000, 1000).shares())) == LARGEST_SHARES


def test_the_file_has_no_name_and_is_closed_with_its_owner():
    spill = Spill()
    spill.append(table_of([("text", 1)]))
    descriptor = spill._file.fileno()
    assert os.fstat(descriptor).st_nlink == 0
    assert [table.to_pylist() for table in spill.tables(["text"])] == [[{"text": "text"}]]
    file = spill._file
    del spill
    assert file.closed


@pytest.mark.parametrize(("distinct", "chosen"), [(100, CountTable), (10_000_000, CountMinSketch)])
def test_the_smaller_structure_is_taken(distinct, chosen):
    counts = sized_counts(distinct, 10_000_000, error=10, failure=0.02)
    assert type(counts) is chosen
    sketch_bytes = CountMinSketch.bytes_for_error(10_000_000, 10)
    assert (distinct * BYTES_PER_KEY < sketch_bytes) == (chosen is CountTable)
    if chosen is CountMinSketch:
        assert counts.nbytes == sketch_bytes
