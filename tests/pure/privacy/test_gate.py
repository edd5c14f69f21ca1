import hashlib
import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import example, given
from hypothesis import strategies as st

from privacy.accounting.events import event_from_json
from privacy.gate.hashing import secret_words
from privacy.gate.kanonymity import KAnonymityGate
from privacy.gate.normalizers import Normalizer, normalize_text
from privacy.gate.spill import BoundedRows

KEY = bytes(range(32))
ALMOST_ALL = 1 - 2**-32
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


WORDS = {purpose: secret_words(KEY, purpose, first=0, count=200).tolist() for purpose in (b"cap", b"coin")}


def one_word(purpose, place):
    return WORDS[purpose][place]


def one_coin(gate, place):
    return one_word(b"coin", place) < gate.exact_sampling_rate * 2**32


def naive_record_gate(gate, records):
    counts = Counter(
        normalize_text(text, gate.normalizer)
        for place, (text, _) in enumerate(records)
        if text is not None and one_coin(gate, place)
    )
    return {text: count for text, count in counts.items() if text and count >= gate.k}


def naive_contributor_gate(gate, records):
    tickets = {}
    for place, (text, contributor) in enumerate(records):
        normal = normalize_text(text or "", gate.normalizer)
        if normal:
            own = tickets.setdefault(contributor, {})
            own[normal] = min(own.get(normal, (2**32, 0)), (one_word(b"cap", place), place))
    counts = Counter()
    for own in tickets.values():
        for text, (_, place) in sorted(own.items(), key=lambda item: item[1])[: gate.texts_per_contributor]:
            counts[text] += one_coin(gate, place)
    return {text: count for text, count in counts.items() if count >= gate.k}


def as_dict(table):
    return dict(zip(table["text"].to_pylist(), table["sample_count"].to_pylist(), strict=True))


@given(
    records=RECORDS,
    cuts=CUTS,
    k=st.integers(2, 4),
    rate=st.floats(0.05, 0.95),
    normalizer=st.sampled_from(Normalizer),
    memory=st.sampled_from([100, 1000, 2**27]),
)
@example(records=[("stop", "ann")] * 40, cuts=[10, 20, 30], k=2, rate=0.5, normalizer=Normalizer.L1, memory=2**27)
def test_record_gate_equals_the_naive_one(records, cuts, k, rate, normalizer, memory):
    gate = KAnonymityGate(k, rate, normalizer=normalizer)
    released = gate.release(map(batch_of, cut_up(records, cuts)), key=KEY, memory_bytes=memory)
    assert as_dict(released) == naive_record_gate(gate, records)
    assert released["text"].to_pylist() == sorted(released["text"].to_pylist(), key=str.encode)


@given(
    records=RECORDS,
    cuts=CUTS,
    k=st.integers(2, 3),
    rate=st.floats(0.05, 0.95),
    cap=st.integers(1, 3),
    memory=st.sampled_from([100, 1000, 2**27]),
)
@example(records=[("stop", "ann")] * 9, cuts=[3], k=2, rate=0.95, cap=1, memory=100)
def test_contributor_gate_equals_the_naive_one(records, cuts, k, rate, cap, memory):
    gate = KAnonymityGate(k, rate, unit="contributor", texts_per_contributor=cap)
    released = gate.release(map(batch_of, cut_up(records, cuts)), key=KEY, memory_bytes=memory)
    assert as_dict(released) == naive_contributor_gate(gate, records)


@pytest.mark.parametrize("unit", ["record", "contributor"])
@given(records=RECORDS, cuts=CUTS, memory=st.sampled_from([100, 1000, 2**27]))
def test_ranges_collected_apart_decide_the_same(unit, records, cuts, memory):
    gate = KAnonymityGate(2, 0.8, unit=unit, texts_per_contributor=2 if unit == "contributor" else None)
    parts, position = [], 0
    for part in cut_up(records, cuts):
        parts.append(gate.collect([batch_of(part)], key=KEY, first_record=position))
        position += len(part)
    assert gate.decide(parts, key=KEY, memory_bytes=memory).equals(gate.release([batch_of(records)], key=KEY))


def log_batches(rng, *, rows, texts, contributors):
    for size in [rows // 8] * 8:
        numbers = np.minimum(rng.zipf(1.4, size=size), texts)
        rare = rng.random(size) < 0.5
        numbers[rare] = rng.integers(texts, 20 * texts, size=int(rare.sum()))
        columns = [
            pa.array([f"text {number}" for number in numbers.tolist()]),
            pa.array([f"person {number}" for number in rng.integers(0, contributors, size=size).tolist()]),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["text", "contributor"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_a_million_rows_in_little_memory(unit):
    """Spilled, picked by a sketch and recounted in several shares, against a count of everything in memory."""
    batches = list(log_batches(np.random.default_rng(8), rows=1_000_000, texts=40_000, contributors=50_000))
    gate = KAnonymityGate(12, 0.5, unit=unit, texts_per_contributor=10 if unit == "contributor" else None)
    whole = gate.release(batches, key=KEY, memory_bytes=2**40)
    with pytest.MonkeyPatch.context() as patch:
        shares = []
        original = BoundedRows.shares

        def counted_shares(self, **options):
            assert self.spill is not None
            for share in original(self, **options):
                shares.append(share.num_rows)
                yield share

        patch.setattr(BoundedRows, "shares", counted_shares)
        assert gate.release(batches, key=KEY, memory_bytes=2**20).equals(whole)
    assert len(shares) > 1
    assert whole.num_rows > 100


def test_the_prefilter_leaves_little_to_recount():
    """Of 600,000 distinct texts of the sample, the sketch hands only the frequent and a few others on."""
    batches = list(log_batches(np.random.default_rng(9), rows=1_000_000, texts=40_000, contributors=10))
    gate = KAnonymityGate(12, ALMOST_ALL)
    recounted = []
    with pytest.MonkeyPatch.context() as patch:
        original = BoundedRows.shares

        def counted_shares(self, **options):
            for share in original(self, **options):
                recounted.append(share.num_rows)
                yield share

        patch.setattr(BoundedRows, "shares", counted_shares)
        passed = gate.release(batches, key=KEY, memory_bytes=2**21).num_rows
    assert passed <= sum(recounted) < 4 * passed


def test_one_contributor_alone_never_passes():
    """A thousand copies by one person are one contribution."""
    gate = KAnonymityGate(2, 0.9, unit="contributor", texts_per_contributor=5)
    assert gate.release([batch_of([("stop", "ann")] * 1000)], key=KEY).num_rows == 0


def test_cap_limits_the_total_of_a_contributor():
    gate = KAnonymityGate(2, ALMOST_ALL, unit="contributor", texts_per_contributor=3)
    records = [(f"text {i}", person) for person in ("ann", "bob") for i in range(50)]
    kept = gate.collect([batch_of(records)], key=KEY)
    assert Counter(kept["contributor"].to_pylist()) == {b"ann": 3, b"bob": 3}


def test_one_contributor_with_a_million_rows():
    """A thousand texts a thousand times over stay a thousand pairs, capped, and nothing comes out."""
    texts = pa.array([f"text {i % 1000}" for i in range(125_000)])
    batch = pa.RecordBatch.from_arrays([texts, pa.array(["ann"] * 125_000)], names=["text", "contributor"])
    gate = KAnonymityGate(2, ALMOST_ALL, unit="contributor", texts_per_contributor=20)
    assert gate.collect([batch] * 8, key=KEY).num_rows == 20
    assert gate.release([batch] * 8, key=KEY).num_rows == 0


@given(records=RECORDS, others=RECORDS)
def test_what_a_contributor_keeps_does_not_depend_on_others(records, others):
    """The same places and words, other people saying other things: ann's texts stay the same."""
    gate = KAnonymityGate(2, 0.5, unit="contributor", texts_per_contributor=2)
    own = [(text, "ann") for text, _ in records]
    kept = []
    for company in ([("stop", "bob")] * len(others), [(text, "cyd") for text, _ in others]):
        table = gate.collect([batch_of(own + company)], key=KEY).select(["text", "contributor", "shown"])
        kept.append([row for row in table.to_pylist() if row["contributor"] == b"ann"])
    assert kept[0] == kept[1]


@pytest.mark.parametrize(("copies", "expected"), [(1, 100), (3, 200)])
def test_every_record_is_a_ticket(copies, expected):
    """One of four texts is kept, over 400 keys; the first said thrice has half of the tickets (5 sigma: 43, 50)."""
    gate = KAnonymityGate(2, ALMOST_ALL, unit="contributor", texts_per_contributor=1)
    records = [("text 0", "ann")] * copies + [(f"text {i}", "ann") for i in range(1, 4)]
    kept = Counter()
    for number in range(400):
        kept.update(gate.collect([batch_of(records)], key=number.to_bytes(16, "big"))["text"].to_pylist())
    assert len(kept) == 4
    assert abs(kept["text 0"] - expected) < 50


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
    gate = KAnonymityGate(2, ALMOST_ALL, unit="contributor", texts_per_contributor=2)
    batch = batch_of(records)
    contributors = batch.column("contributor").cast(contributor_type)
    arrays = [batch.column("text"), contributors.dictionary_encode() if encoded else contributors]
    released = gate.release([pa.RecordBatch.from_arrays(arrays, names=["text", "contributor"])], key=KEY)
    assert as_dict(released) == {"play jazz": 2, "stop": 2}


def test_another_key_draws_another_sample():
    records = [(f"text {i}", "ann") for i in range(200)] * 3
    gate = KAnonymityGate(2, 0.5)
    first, second = (set(as_dict(gate.release([batch_of(records)], key=key))) for key in (KEY, KEY[::-1]))
    assert first != second


def test_records_without_contributor_are_refused_without_naming_them():
    gate = KAnonymityGate(2, 0.5, unit="contributor", texts_per_contributor=1)
    with pytest.raises(ValueError, match="2 records have no contributor") as error:
        gate.release([batch_of([("private words", None), ("stop", "ann"), ("private words", None)])], key=KEY)
    assert "private words" not in str(error.value)


def test_short_key_is_refused():
    with pytest.raises(ValueError, match="at least 16 bytes"):
        KAnonymityGate(2, 0.5).release([], key=b"short")


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 1},
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


def test_words_are_the_stream_of_the_standard_cipher():
    """Block 0 of AES-256 in counter mode is the cipher of sixteen zero bytes, here by the block alone."""
    header = len(KEY).to_bytes(4, "big") + KEY + (4).to_bytes(4, "big") + b"coin"
    cipher = Cipher(AES(hashlib.shake_256(header).digest(32)), ECB()).encryptor()
    blocks = cipher.update(b"".join(number.to_bytes(16, "big") for number in range(3)))
    assert secret_words(KEY, b"coin", first=0, count=12).tobytes() == blocks


def test_purposes_and_keys_are_separated():
    streams = [
        secret_words(*source, first=0, count=64) for source in ((KEY, b"coin"), (KEY, b"cap"), (KEY + b"c", b"oin"))
    ]
    assert len({stream.tobytes() for stream in streams}) == 3


@pytest.mark.parametrize(("unit", "cap"), [("record", None), ("contributor", 4)])
def test_event_is_priced_for_what_happens(unit, cap):
    gate = KAnonymityGate(20, 0.3, unit=unit, texts_per_contributor=cap)
    event = gate.event(0.5)
    assert event.sampling_rate == gate.exact_sampling_rate != 0.3
    assert (event.k, event.unit, event.normalizer) == (20, unit, "L1")
    # A person's four texts compose; each by itself they would cost 2.
    assert event.cost().epsilon == pytest.approx(0.68359375 if cap else 0.5)
    assert event_from_json(event.to_json()) == event


def test_texts_that_are_not_utf_8_are_refused_without_quoting_them():
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 5], np.int32)), pa.py_buffer(b"priv\xff")]
    )
    by_number = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), broken)
    for texts in (broken, pa.array([b"priv\xff"], pa.binary()), by_number):
        with pytest.raises(ValueError, match="valid UTF-8") as error:
            KAnonymityGate(2, 0.5).release([pa.RecordBatch.from_arrays([texts], names=["text"])], key=KEY)
        assert "priv" not in str(error.value)
        assert error.value.__cause__ is None


def test_where_all_texts_are_unique_nothing_passes():
    batch = pa.RecordBatch.from_pydict({"text": [f"text {number}" for number in range(50_000)]})
    for memory in (1000, 2**27):
        assert KAnonymityGate(2, 0.9).release([batch], key=KEY, memory_bytes=memory).num_rows == 0
