"""The gate equals a naive count of the sample, however its input is cut, and its coins are fair."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privacy import gate as gate_module
from privacy.accounting.events import event_from_json
from privacy.gate import KAnonymityGate, rank_within, secret_words
from privacy.normalizers import Normalizer, normalize_text

KEY = bytes(range(32))
TEXTS = st.sampled_from(["play jazz", "Play Jazz!", "stop", "", "?!", "Straße", "strasse", None])
RECORDS = st.lists(st.tuples(TEXTS, st.sampled_from(["ann", "bob", "cyd", "dan"])), max_size=60)
CUTS = st.lists(st.integers(0, 60), max_size=4)


def batch_of(records, text_type=None):
    texts, contributors = [record[0] for record in records], [record[1] for record in records]
    return pa.RecordBatch.from_arrays(
        [pa.array(texts, text_type or pa.string()), pa.array(contributors, pa.string())], names=["text", "contributor"]
    )


def cut_up(records, cuts):
    edges = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    return [records[start:stop] for start, stop in itertools.pairwise(edges)]


def one_word(purpose, place):
    return int(secret_words(KEY, purpose, first=place, count=1)[0])


def one_coin(gate, place):
    return one_word(b"coin", place) < gate.exact_sampling_rate * 2**64


def naive_record_gate(gate, records):
    counts = Counter(
        normalize_text(text, gate.normalizer)
        for place, (text, _) in enumerate(records)
        if text is not None and one_coin(gate, place)
    )
    return {text: count for text, count in counts.items() if text and count >= gate.k}


def naive_contributor_gate(gate, records):
    pairs = []
    for text, contributor in records:
        pair = (normalize_text(text or "", gate.normalizer), contributor)
        if pair[0] and pair not in pairs:
            pairs.append(pair)
    counts = Counter()
    for contributor in {pair[1] for pair in pairs}:
        own = [place for place, pair in enumerate(pairs) if pair[1] == contributor]
        own.sort(key=lambda place: one_word(b"cap", place) >> 32)
        for place in own[: gate.texts_per_contributor]:
            counts[pairs[place][0]] += one_coin(gate, place)
    return {text: count for text, count in counts.items() if count >= gate.k}


def as_dict(table):
    return dict(zip(table["text"].to_pylist(), table["sample_count"].to_pylist(), strict=True))


@given(
    records=RECORDS, cuts=CUTS, k=st.integers(1, 4), rate=st.floats(0.05, 0.95), normalizer=st.sampled_from(Normalizer)
)
def test_record_gate_equals_the_naive_one(records, cuts, k, rate, normalizer):
    gate = KAnonymityGate(k, rate, normalizer=normalizer)
    released = gate.release(map(batch_of, cut_up(records, cuts)), key=KEY)
    assert as_dict(released) == naive_record_gate(gate, records)
    assert released["text"].to_pylist() == sorted(released["text"].to_pylist(), key=str.encode)


@given(records=RECORDS, cuts=CUTS, k=st.integers(1, 3), rate=st.floats(0.05, 0.95), cap=st.integers(1, 3))
@example(records=[("stop", "ann")] * 9, cuts=[3], k=2, rate=0.95, cap=1)
def test_contributor_gate_equals_the_naive_one(records, cuts, k, rate, cap):
    gate = KAnonymityGate(k, rate, unit="contributor", texts_per_contributor=cap)
    released = gate.release(map(batch_of, cut_up(records, cuts)), key=KEY)
    assert as_dict(released) == naive_contributor_gate(gate, records)


@pytest.mark.parametrize("unit", ["record", "contributor"])
@given(records=RECORDS, cuts=CUTS, merge_rows=st.integers(0, 9))
def test_ranges_collected_apart_decide_the_same(unit, records, cuts, merge_rows):
    gate = KAnonymityGate(1, 0.6, unit=unit, texts_per_contributor=2 if unit == "contributor" else None)
    parts, position = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_module, "MERGE_ROWS", merge_rows)
        for part in cut_up(records, cuts):
            parts.append(gate.collect([batch_of(part)], key=KEY, first_record=position))
            position += len(part)
        assert gate.decide(parts, key=KEY).equals(gate.release([batch_of(records)], key=KEY))


def test_one_contributor_alone_never_passes():
    """A thousand copies by one person are one contribution."""
    gate = KAnonymityGate(2, 0.9, unit="contributor", texts_per_contributor=5)
    assert gate.release([batch_of([("stop", "ann")] * 1000)], key=KEY).num_rows == 0


def test_cap_limits_the_total_of_a_contributor():
    gate = KAnonymityGate(1, 1 - 2**-32, unit="contributor", texts_per_contributor=3)
    records = [(f"text {i}", "ann") for i in range(50)]
    assert gate.release([batch_of(records)], key=KEY).num_rows == 3


def test_cap_draws_evenly_among_own_texts():
    """Every text is kept about equally often over keys: 400 keys, expected 100 each, 5 sigma is 43."""
    gate = KAnonymityGate(1, 1 - 2**-32, unit="contributor", texts_per_contributor=1)
    records = [(f"text {i}", "ann") for i in range(4)]
    kept = Counter()
    for number in range(400):
        kept.update(as_dict(gate.release([batch_of(records)], key=number.to_bytes(16, "big"))))
    assert set(kept) == {text for text, _ in records}
    assert all(abs(count - 100) < 43 for count in kept.values())


@pytest.mark.parametrize("text_type", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_every_arrow_form_of_text_is_read(text_type):
    records = [("play jazz", "ann"), ("stop", "bob"), (None, "bob"), ("play jazz", "bob")] * 5
    gate = KAnonymityGate(2, 0.7)
    expected = gate.release([batch_of(records)], key=KEY)
    dictionary = batch_of(records).column("text").dictionary_encode() if pa.types.is_dictionary(text_type) else None
    texts = dictionary if dictionary is not None else batch_of(records).column("text").cast(text_type)
    batch = pa.RecordBatch.from_arrays([texts], names=["text"])
    assert expected.num_rows == 2
    assert gate.release([batch], key=KEY).equals(expected)


@pytest.mark.parametrize("contributor_type", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()])
@pytest.mark.parametrize("encoded", [False, True])
def test_every_arrow_form_of_contributor_is_read(contributor_type, encoded):
    records = [("play jazz", "ann"), ("stop", "bob"), ("play jazz", "bob"), ("stop", "ann")]
    gate = KAnonymityGate(2, 1 - 2**-32, unit="contributor", texts_per_contributor=2)
    batch = batch_of(records)
    contributors = batch.column("contributor").cast(contributor_type)
    arrays = [batch.column("text"), contributors.dictionary_encode() if encoded else contributors]
    released = gate.release([pa.RecordBatch.from_arrays(arrays, names=["text", "contributor"])], key=KEY)
    assert as_dict(released) == {"play jazz": 2, "stop": 2}


def test_another_key_draws_another_sample():
    records = [(f"text {i}", "ann") for i in range(200)]
    gate = KAnonymityGate(1, 0.5)
    first, second = (set(as_dict(gate.release([batch_of(records)], key=key))) for key in (KEY, KEY[::-1]))
    assert first != second


def test_no_records():
    for unit, cap in (("record", None), ("contributor", 1)):
        released = KAnonymityGate(2, 0.5, unit=unit, texts_per_contributor=cap).release([], key=KEY)
        assert released.num_rows == 0
        assert released.schema.names == ["text", "sample_count"]


def test_records_without_contributor_are_refused_without_naming_them():
    gate = KAnonymityGate(2, 0.5, unit="contributor", texts_per_contributor=1)
    with pytest.raises(ValueError, match="2 records have no contributor") as error:
        gate.release([batch_of([("private words", None), ("stop", "ann"), ("private words", None)])], key=KEY)
    assert "private words" not in str(error.value)


@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_missing_columns_are_refused(unit):
    gate = KAnonymityGate(2, 0.5, unit=unit, texts_per_contributor=1 if unit == "contributor" else None)
    with pytest.raises(ValueError, match="need a column"):
        gate.release([pa.RecordBatch.from_pydict({"other": ["a"]})], key=KEY)


def test_short_key_is_refused():
    with pytest.raises(ValueError, match="at least 16 bytes"):
        KAnonymityGate(2, 0.5).release([], key=b"short")


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.0},
        {"sampling_rate": float("nan")},
        {"unit": "household"},
        {"texts_per_contributor": 3},
        {"unit": "contributor"},
        {"unit": "contributor", "texts_per_contributor": 0},
        {"normalizer": "L9"},
    ],
)
def test_parameters_are_checked(arguments):
    with pytest.raises(ValueError):
        KAnonymityGate(**{"k": 2, "sampling_rate": 0.5, **arguments})


@given(rate=st.floats(2**-32, 1 - 2**-32))
def test_charged_rate_is_the_rate_of_the_coins(rate):
    exact = KAnonymityGate(2, rate).exact_sampling_rate
    assert (exact * 2**32).is_integer()
    assert rate - 2**-32 < exact <= rate


@given(first=st.integers(0, 9000), count=st.integers(0, 9000))
def test_words_do_not_depend_on_how_they_are_read(first, count):
    whole = secret_words(KEY, b"x", first=0, count=18_000)
    np.testing.assert_array_equal(secret_words(KEY, b"x", first=first, count=count), whole[first : first + count])


def test_purposes_and_keys_are_separated():
    streams = [
        secret_words(*source, first=0, count=64) for source in ((KEY, b"coin"), (KEY, b"cap"), (KEY + b"c", b"oin"))
    ]
    assert len(np.unique(np.concatenate(streams))) == 3 * 64


def groups_before(groups, group):
    return sum(other < group for other in groups)


@given(groups=st.lists(st.integers(0, 4), min_size=1, max_size=30), seed=st.integers(0, 99))
def test_rank_within(groups, seed):
    keys = np.random.default_rng(seed).integers(0, 9, size=len(groups), dtype=np.uint64) << np.uint64(32)
    order = sorted(range(len(groups)), key=lambda row: (groups[row], keys[row], row))
    expected = [order.index(row) - groups_before(groups, groups[row]) for row in range(len(groups))]
    assert rank_within(np.array(groups), keys).tolist() == expected


@pytest.mark.parametrize(("unit", "cap"), [("record", None), ("contributor", 4)])
def test_event_is_priced_for_what_happens(unit, cap):
    gate = KAnonymityGate(20, 0.3, unit=unit, texts_per_contributor=cap)
    event = gate.event(0.5)
    assert event.sampling_rate == gate.exact_sampling_rate != 0.3
    assert (event.k, event.unit, event.normalizer) == (20, unit, "L1")
    assert event.cost().epsilon == pytest.approx(0.5 * (cap or 1))
    assert event_from_json(event.to_json()) == event
