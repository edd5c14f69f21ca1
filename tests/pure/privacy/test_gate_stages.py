import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.gate.kanonymity import KAnonymityGate, ThresholdGate
from privacy.gate.spill import encoded_again, without_dictionaries
from privacy.mechanisms.randomness import SimulationRandom

KEY = bytes(range(32))
RECORDS = st.lists(
    st.tuples(st.sampled_from(["play", "Play!", "stop", "go", "", None, "né"]), st.sampled_from("abcdefgh")),
    max_size=60,
)
GATES = {
    "k-anonymity, records": KAnonymityGate(2, 0.8),
    "k-anonymity, contributors": KAnonymityGate(2, 0.8, "contributor", 2),
    "threshold, records": ThresholdGate(1.0, 0.2, floor=2),
    "threshold, weighted records": ThresholdGate(1.0, 0.2, noise="weighted_gaussian", floor=2),
    "threshold, contributors": ThresholdGate(1.0, 0.2, "contributor", 2, floor=2),
    "threshold, contributors by text": ThresholdGate(1.0, 0.2, "contributor", 2, noise="truncated_geometric"),
}


def batch_of(records):
    return pa.RecordBatch.from_arrays(
        [pa.array([text for text, _ in records], pa.string()), pa.array([who for _, who in records], pa.string())],
        names=["text", "contributor"],
    )


def collected(gate, records, cuts):
    edges = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    return [
        gate.collect([batch_of(records[start:stop])], key=KEY, first_record=start)
        for start, stop in itertools.pairwise(edges)
    ]


def split(gate, table, shares):
    place, written = gate.shares_of(table, key=KEY, shares=shares), without_dictionaries(table)
    return [encoded_again(written.filter(pa.array(place == share)), table.schema) for share in range(shares)]


def in_shares(gate, tables, shares):
    return list(zip(*(split(gate, table, shares) for table in tables), strict=True))


def staged(gate, records, cuts, shares):
    """Count as workers do: ranges, shares of the contributors if these are capped, shares of the texts."""
    tables = collected(gate, records, cuts)
    if gate.texts_per_contributor is not None:
        tables = [gate.merged_texts(share, key=KEY) for share in in_shares(gate, tables, shares)]
    return [table for share in in_shares(gate, tables, shares) for table in gate.counted(share, key=KEY)]


def by_text(tables):
    rows = [row for table in tables for row in table.to_pylist()]
    assert len({row["text"] for row in rows}) == len(rows)
    return sorted(rows, key=lambda row: row["text"])


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", GATES)
@given(records=RECORDS, cuts=st.lists(st.integers(0, 60), max_size=4), shares=st.integers(1, 5))
def test_counts_do_not_depend_on_ranges_and_shares(name, records, cuts, shares):
    gate = GATES[name]
    whole = gate.counted(gate.texts(gate.read([batch_of(records)], key=KEY), key=KEY), key=KEY)
    assert by_text(staged(gate, records, cuts, shares)) == by_text(whole)


@pytest.mark.parametrize("name", [name for name in GATES if name.startswith("threshold")])
@settings(deadline=None, max_examples=20)
@given(records=RECORDS, cuts=st.lists(st.integers(0, 60), max_size=4), seed=st.integers(0, 5))
def test_the_same_noise_falls_on_the_same_texts_however_it_was_cut(name, records, cuts, seed):
    gate = GATES[name]
    whole, parts = ([batch_of(records)], collected(gate, records, cuts))
    first = gate.decide(gate.read(whole, key=KEY), key=KEY, rng=SimulationRandom(seed))
    assert gate.decide(parts, key=KEY, rng=SimulationRandom(seed)).equals(first)
    assert first.schema.names == ["text", "noisy_count"]


@pytest.mark.parametrize("name", GATES)
def test_equal_rows_meet_in_one_share_and_nothing_is_lost(name):
    gate = GATES[name]
    records = [(f"text {number % 40}", f"person {number % 60}") for number in range(600)]
    (table,) = collected(gate, records, [])
    shares = split(gate, table, 4)
    assert sum(share.num_rows for share in shares) == table.num_rows
    column = "contributor" if gate.texts_per_contributor else "text"
    owners = [set(share[column].to_pylist()) for share in shares]
    assert sum(map(len, owners)) == len(set.union(*owners))
    assert all(owners)
    assert all(share.schema == table.schema for share in shares)
    # A share carries its own values only: what the others hold would travel along in a dictionary.
    for share in shares:
        values = share[column].combine_chunks()
        assert len(values.dictionary if pa.types.is_dictionary(values.type) else values) <= share.num_rows


def test_short_keys_are_refused_everywhere():
    gate = ThresholdGate(1.0, 1e-6)
    with pytest.raises(ValueError, match="16 bytes"):
        gate.collect([], key=b"short")
    with pytest.raises(ValueError, match="16 bytes"):
        gate.decide([], key=b"short")
