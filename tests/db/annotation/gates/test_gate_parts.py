"""One upload, any number of workers: the same texts come out, and what was drawn on the way is gone afterwards."""

import re
import secrets
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models import FloatField
from django.db.models.functions import Coalesce, Now

from annotation.gates.services import gate, gate_parts
from annotation.models import GatePart, GatePiece, GateRun, Job, Query
from annotation.tasks import collect_gate_parts_task
from privacy import threshold_gate
from privacy.gate import KAnonymityGate
from privacy.mechanisms.randomness import SimulationRandom
from privacy.services import ledger
from tests.factories import make_project, make_records

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = [f"text {number % (7 + number // 40)}" for number in range(600)] + ["Stop!", "stop"] * 60 + ["only once"]
CONTRIBUTORS = [(number * 7 % 90).to_bytes(16, "big") for number in range(len(TEXTS))]
# With these numbers some of the texts pass and some do not, whichever coins are drawn.
GATE = {"gate_k": 8, "gate_sampling_rate": 0.5, "gate_epsilon": 1.0}
THRESHOLD = {
    "gate_kind": "threshold",
    "gate_k": None,
    "gate_sampling_rate": None,
    "gate_epsilon": 1.0,
    "gate_delta": 1e-3,
    "gate_floor": 4,
}


@pytest.fixture(autouse=True)
def sent(monkeypatch):
    """What would have been handed to the broker: names and arguments."""
    calls = []
    monkeypatch.setattr(
        "celery.app.base.Celery.send_task",
        lambda app, name, *args, **options: calls.append((name, args, options.get("kwargs"))),
    )
    return calls


def upload(unit="record", **fields):
    pool = ledger.open_account(
        scope=f"gate {secrets.token_hex(4)}",
        label="pool",
        unit=unit,
        filter="pure",
        epsilon_limit=10.0,
        delta_limit=0.5,
        actor="test",
        reason="test",
    )
    cap = 3 if unit == "contributor" else None
    chosen = GATE | {"privacy_unit": unit, "texts_per_contributor": cap} | fields
    project = make_project(oracle="crowd", normalizer="L1", pool_account=pool, **chosen)
    records = make_records(project, TEXTS)
    for record, contributor in zip(records, CONTRIBUTORS, strict=True):
        record.contributor = contributor
    type(records[0]).objects.bulk_update(records, ["contributor"])
    return records[0].dataset


def in_parts(monkeypatch, parts):
    monkeypatch.setattr(gate_parts, "PART_ROWS", len(TEXTS) // parts)


def gated(unit="record", **fields):
    job = gate.start_gate(dataset=upload(unit, **fields))
    gate.run_gate(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    return job


def passed(job):
    run = GateRun.objects.get(dataset=job.gated_dataset, state="committed")
    found = Query.objects.filter(gate_run=run).order_by("text")
    return list(found.values_list("text", Coalesce("sample_count", "noisy_count", output_field=FloatField())))


@pytest.mark.parametrize("kind", ["k_anonymity", "threshold"])
@pytest.mark.parametrize(("unit", "stages"), [("record", 2), ("contributor", 3)])
def test_the_number_of_parts_changes_nothing(monkeypatch, kind, unit, stages, sent):
    """Under one key, and for the threshold gate one source of noise, all texts come out with the same counts."""
    monkeypatch.setattr(gate_parts, "coin_key", lambda salt: b"one key for all " * 2)
    monkeypatch.setattr(threshold_gate, "SecureRandom", lambda: SimulationRandom(7))
    results = {}
    for parts in (1, 2, 5):
        in_parts(monkeypatch, parts)
        sent.clear()
        results[parts] = passed(gated(unit, **(THRESHOLD if kind == "threshold" else {})))
        helpers = 0 if parts == 1 else stages * (parts - 1)
        assert [name for name, *_ in sent].count(gate_parts.COLLECT_TASK) == helpers
    assert results[1] == results[2] == results[5]
    assert 1 < len(results[1]) < len(set(TEXTS))
    assert "only once" not in dict(results[1])


def test_every_text_and_contributor_is_dealt_with_in_one_part(monkeypatch):
    """What a stage hands on is disjoint: the shares are cut by the hash of contributors, then of texts."""
    in_parts(monkeypatch, 4)
    owners = {"people": [], "texts": []}
    for stage, method, column in (("people", "merged_texts", "contributor"), ("texts", "counted", "text")):
        original = getattr(KAnonymityGate, method)

        def look(self, parts, *, key, stage=stage, original=original, column=column):
            tables = list(parts)
            owners[stage].append({value for table in tables for value in table[column].to_pylist()})
            return original(self, tables, key=key)

        monkeypatch.setattr(KAnonymityGate, method, look)
    gated("contributor")
    for parts in owners.values():
        assert len(parts) == 4
        assert sum(map(len, parts)) == len(set.union(*parts)) > 4
    assert {len(who) for who in set.union(*owners["people"])} == {16}


def test_long_texts_make_more_ranges(monkeypatch, sent):
    monkeypatch.setattr(gate_parts, "PART_BYTES", sum(map(len, TEXTS)) // 3)
    gated()
    assert [name for name, *_ in sent].count(gate_parts.COLLECT_TASK) == 2 * 2


def test_helpers_digest_what_is_free_and_nothing_twice(monkeypatch):
    in_parts(monkeypatch, 5)
    digested = []
    collect = KAnonymityGate.collect

    def help_out(self, batches, *, key, first_record):
        digested.append(first_record)
        if len(digested) == 2:
            # Somebody else comes along while this range is held; it leaves the held one alone.
            with OtherConnection():
                collect_gate_parts_task(run_id=GateRun.objects.get().pk)
        return collect(self, batches, key=key, first_record=first_record)

    monkeypatch.setattr(KAnonymityGate, "collect", help_out)
    gated()
    assert sorted(digested) == [len(TEXTS) * part // 5 for part in range(5)]


class OtherConnection:
    """A second session, as another worker has one."""

    def __enter__(self):
        self.own = connections["default"]
        connections["default"] = self.own.copy()

    def __exit__(self, *error):
        connections["default"].close()
        connections["default"] = self.own


def test_neither_key_nor_text_reaches_the_broker_and_nothing_of_an_attempt_stays(monkeypatch, sent):
    in_parts(monkeypatch, 5)
    keys = []
    merged_texts = KAnonymityGate.merged_texts

    def look(self, parts, *, key):
        keys.append(key)
        # The salt alone says nothing about the coins, and the key is nowhere in the database.
        assert not holders(key.hex())
        assert {bytes(part.salt) for part in GatePart.objects.all()}.isdisjoint(keys)
        return merged_texts(self, parts, key=key)

    monkeypatch.setattr(KAnonymityGate, "merged_texts", look)
    job = gated("contributor")
    assert len(keys) == 5
    assert not GatePart.objects.exists()
    assert not GatePiece.objects.exists()
    assert all(list(kwargs) in (["run_id"], ["project_id"], ["job_id"]) for *_rest, kwargs in sent if kwargs)
    assert all(re.fullmatch(r"[\w\-{}':. ]*", str(kwargs)) for *_rest, kwargs in sent)
    assert passed(job)


def holders(hexadecimal):
    """Return the tables with these bytes anywhere."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}" t WHERE t::text LIKE %s', [f"%{hexadecimal}%"])
            found += [table] * bool(cursor.fetchone()[0])
    return found


def test_the_key_needs_the_secret_of_the_site(settings):
    first, second = gate_parts.coin_key(b"a" * 32), gate_parts.coin_key(b"b" * 32)
    assert len(first) == 32
    assert first != second
    settings.SECRET_KEY = "another"
    assert gate_parts.coin_key(b"a" * 32) != first


def test_ranges_stay_out_of_the_log_of_the_database():
    with connection.cursor() as cursor:
        for table in (GatePart, GatePiece):
            cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = %s", [table._meta.db_table])
            assert cursor.fetchone() == ("u",)


class Killed(BaseException):
    """What a worker never sees: nothing after it runs."""


def test_a_range_whose_worker_died_is_taken_by_the_next(monkeypatch):
    in_parts(monkeypatch, 2)
    collect = KAnonymityGate.collect
    seen = []

    def die_once(self, batches, *, key, first_record):
        seen.append((key, first_record))
        call = len(seen)
        if call == 1:
            with OtherConnection(), pytest.raises(Killed):
                gate_parts.collect_parts(run_id=GateRun.objects.get().pk)
        if call == 2:
            raise Killed
        return collect(self, batches, key=key, first_record=first_record)

    monkeypatch.setattr(KAnonymityGate, "collect", die_once)
    gated()
    assert [first for _key, first in seen] == [0, len(TEXTS) // 2, len(TEXTS) // 2]
    assert len({key for key, _first in seen}) == 1
    assert GateRun.objects.count() == 1


def test_a_killed_attempt_leaves_ranges_that_the_next_one_forgets(monkeypatch):
    in_parts(monkeypatch, 2)
    collect = KAnonymityGate.collect
    keys = []

    def die(self, batches, *, key, first_record):
        keys.append(key)
        if first_record:
            raise Killed
        return collect(self, batches, key=key, first_record=first_record)

    monkeypatch.setattr(KAnonymityGate, "collect", die)
    job = gate.start_gate(dataset=upload())
    with pytest.raises(Killed):
        gate.run_gate(job_id=job.pk)
    lost = GateRun.objects.get()
    assert GatePart.objects.filter(run=lost).count() == 2
    monkeypatch.setattr(KAnonymityGate, "collect", collect)
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(minutes=10))
    gate.run_gate(job_id=job.pk)
    lost.refresh_from_db()
    assert lost.state == "lost"
    assert not GatePart.objects.exists()
    gate_parts.collect_parts(run_id=lost.pk)  # a late helper finds nothing to do
    assert GateRun.objects.filter(state="committed").count() == 1
    assert job.project.pool_account.entries.filter(kind="charge").count() == 1


LOSSES = {
    "a part": lambda: GatePart.objects.filter(first_row=0, done=True),
    "a piece": lambda: GatePiece.objects.filter(stage="texts", number=1, source=0),
    "all pieces": GatePiece.objects.all,
}


@pytest.mark.parametrize("what", LOSSES)
def test_lost_parts_end_the_attempt_instead_of_changing_its_result(monkeypatch, what):
    in_parts(monkeypatch, 3)
    collect = KAnonymityGate.collect

    def lose(self, batches, *, key, first_record):
        with OtherConnection():
            LOSSES[what]().delete()
        return collect(self, batches, key=key, first_record=first_record)

    monkeypatch.setattr(KAnonymityGate, "collect", lose)
    job = gate.start_gate(dataset=upload())
    with pytest.raises(LookupError):
        gate.run_gate(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, GateRun.objects.get().state) == ("failed", "lost")
    assert not Query.objects.exists()
    assert not GatePart.objects.exists()
