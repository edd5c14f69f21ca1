"""A gate whose mechanism and event are declared here, and nowhere else: priced, run, planned, and held to its proof."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from django.db import IntegrityError

from addons.spark.jobs import UnknownGate, gate_told
from annotation.choices.catalogue import CATALOGUE
from annotation.choices.gates import ONE_UPLOAD_ALONE, GateChoice, run_event
from annotation.choices.presets import broken_rules
from annotation.data.services import registered
from annotation.errors import InvalidConfiguration, InvalidUpload
from annotation.gates import services as gates
from annotation.gates.receipts import receipt_of
from annotation.models import GateRun, Job, Query
from annotation.projects.services import configuring
from privacy.accounting.cost import Adjacency, Cost, Unit
from privacy.accounting.events import GateEvent, GateOfSnapshotEvent, GateWindowEvent, GaussianEvent, event_from_json
from privacy.accounting.gate_events import discrete_laplace_delta, discrete_laplace_threshold
from privacy.choices import parameter
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer
from privacy.gate.reading import COUNTS, all_counts, pairs
from privacy.gate.threshold import GeometricNoise
from privacy.ledger.models import LedgerEntry
from privacy.ledger.selectors import guarantee
from privacy.mechanisms.randomness import SecureRandom
from privacy.wording import as_message
from tests.factories import make_records, open_preset, write_settings
from tests.gate_scans import crowd as plain_crowd
from tests.gate_scans import passed, upload
from tests.lakes import register, write_table

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True, slots=True)
class TensGateEvent(GateEvent):
    """Texts whose number of contributions reaches a threshold with Laplace noise, told in tens; proved for one run."""

    epsilon: float
    threshold: int
    unit: Unit = "record"
    texts_per_contributor: int = 1
    kind: ClassVar[str] = "tens_gate"
    valid_for: ClassVar[frozenset[Adjacency]] = frozenset(("null", "add_remove", "replace"))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        texts = self.texts_per_contributor * (2 if adjacency == "replace" else 1)
        return Cost(self.epsilon, discrete_laplace_delta(1 / self.epsilon, self.threshold)).times(texts)

    def summary(self) -> str:
        return f"gate that tells tens from {self.threshold} on"


@dataclass(frozen=True, slots=True)
class TensGate(CountingGate):
    epsilon: float
    threshold: int
    unit: Unit = "record"
    texts_per_contributor: int | None = None
    normalizer: Normalizer = Normalizer.L1
    count_column = "noisy_count"

    def event(self, epsilon=None):
        return TensGateEvent(self.epsilon, self.threshold, self.unit, self.texts_per_contributor or 1)

    def chances(self, counts, *, mean_weight=1.0):
        missing, q = self.threshold - counts, math.exp(-self.epsilon)
        outward = q ** np.maximum(np.abs(missing), 1 - missing) / (1 + q)
        return np.where(missing >= 1, outward, 1 - outward)

    @classmethod
    def at_price(cls, epsilon, delta, unit="record", texts_per_contributor=None):
        cap = texts_per_contributor or 1
        threshold = discrete_laplace_threshold(epsilon / cap, delta / cap)
        return [cls(epsilon / cap, threshold, unit, texts_per_contributor)]

    def described(self):
        return f"tens from {self.threshold}"

    @property
    def minimum(self):
        return 1

    def read(self, batches, *, key, first_record=0):
        if self.texts_per_contributor is None:
            return all_counts(batches, self.normalizer)
        return pairs(batches, self.normalizer, key=key, threshold=0, first_record=first_record)

    def _texts_of(self, pairs):
        tallied = pc.value_counts(pairs["text"].combine_chunks())
        return pa.table([tallied.field("values").cast(pa.large_string()), tallied.field("counts")], schema=COUNTS)

    def conclude(self, counted, *, rng=None):
        schema = pa.schema([("text", pa.large_string()), ("noisy_count", pa.int64())])
        released = [schema.empty_table()]
        for share in counted:
            counts = share["sample_count"].combine_chunks().to_numpy()
            noise = GeometricNoise(1 / self.epsilon)
            chosen, noisy = noise.release(counts, self.threshold, rng=SecureRandom() if rng is None else rng)
            texts = share["text"].combine_chunks().filter(pa.array(chosen))
            released.append(pa.table([texts, pa.array(noisy // 10 * 10)], schema=schema))
        return pa.concat_tables(released).sort_by("text")


@dataclass(frozen=True)
class InTens(GateChoice):
    name: ClassVar[str] = "in_tens"
    label: ClassVar[str] = "counts told in tens"
    charged_as: ClassVar[type[TensGateEvent]] = TensGateEvent

    gate_tens: int = parameter(3, at_least=2, at_most=9, label="Gate: tens", help="So often a text must be said.")

    def gate(self, unit: Unit) -> TensGate:
        cap = self.cap(unit)
        return TensGate(self.gate_epsilon / (cap or 1), 10 * self.gate_tens, unit, cap, Normalizer(self.normalizer))

    @classmethod
    def at_price(cls, epsilon, delta, *, unit, texts_per_contributor):
        found = cls(gate_epsilon=epsilon, texts_per_contributor=texts_per_contributor, normalizer="L1")
        return [found] if found.run_event(unit).cost().delta <= delta else []

    def unpayable(self, delta, settings):
        return {"gate_tens": as_message("So few tens cost delta {delta:.2g}.", delta=delta)}

    def needed(self, unit):
        return 10 * self.gate_tens

    def passes(self):
        return as_message("{tens} tens are wanted.", tens=self.gate_tens)

    def told(self, unit):
        return as_message("About {tens} tens said this.", tens=self.gate_tens)

    def why(self, unit):
        return as_message("Some {tens} tens of records say this", tens=self.gate_tens)


DECLARED = InTens


@pytest.fixture
def crowd(declared, manager):
    return open_preset(manager, "voice-crowd", privacy_unit="record", gate_kind="in_tens", gate_tens=3)


def entries(project):
    return list(LedgerEntry.objects.filter(account=project.pool_account).exclude(kind="grant").order_by("pk"))


def tens_crowd(unit="record", **fields):
    sampled = {"gate_k": None, "gate_sampling_rate": None, "gate_epsilon": 1.0}
    return plain_crowd(unit, **sampled | {"gate_kind": "in_tens", "gate_tens": 2} | fields)


def test_without_a_price_there_is_no_gate():
    free = type("Free", (TensGate,), {"event": CountingGate.event})
    with pytest.raises(TypeError, match=r"abstract method '?event"):
        free(1.0, 20)
    unnamed = type("Unnamed", (InTens,), {"gate": GateChoice.gate, "name": "unnamed"})
    with pytest.raises(TypeError, match="gate unnamed leaves out gate"):
        CATALOGUE.register(unnamed)


@pytest.mark.parametrize("wrong", [TensGateEvent(1.0, 30, "contributor", 1), GaussianEvent(1.0, 2.0)])
def test_an_event_that_is_none_of_a_gate_or_hides_others_is_never_charged_and_nothing_is_read(
    crowd, monkeypatch, wrong
):
    records = make_records(crowd, ["play jazz"] * 300)
    job = gates.start_gate(dataset=records[0].dataset)
    monkeypatch.setattr(TensGate, "event", lambda gate, epsilon=None: wrong)
    monkeypatch.setattr(gates, "release", None)
    with pytest.raises(TypeError, match="in_tens does not pay for hiding each record"):
        run_event(crowd.settings)
    with pytest.raises(TypeError, match="in_tens"):
        gates.run_gate(job_id=job.pk)
    assert entries(crowd) == []
    assert not GateRun.objects.exists()


@pytest.mark.parametrize("in_database", [True, False])
@pytest.mark.parametrize("unit", ["record", "contributor"])
def test_an_upload_goes_through_it_and_its_event_is_charged(declared, settings, unit, in_database):
    """False alarm: < 1e-12; counts of 250 and 1 lie 89 or more from the threshold, and the noise has scale 3."""
    settings.POOLS_IN_DATABASE = in_database
    project = tens_crowd(unit, gate_tens=9)
    said = [(text, f"person {number}") for number in range(250) for text in ("play jazz", "stop", "go on")]
    _digest, texts = passed(upload(project, [*said, ("only once", "person 250")]))
    assert [text for text, _ in texts] == ["go on", "play jazz", "stop"]
    assert {count % 10 for _, count in texts} == {0}
    (reserved, _committed) = entries(project)
    event = event_from_json(reserved.event)
    cap = 3 if unit == "contributor" else 1
    assert event == TensGateEvent(1.0 / cap, 90, unit, cap)
    assert reserved.mechanism == "tens_gate"
    assert reserved.epsilon_nano == pytest.approx(event.cost().epsilon * 1e9, abs=1)
    assert guarantee(project.pool_account).epsilon_spent == pytest.approx(1.0, abs=1e-8)
    assert receipt_of(project).why == "Some 9 tens of records say this"
    assert set(Query.objects.values_list("sample_count", flat=True)) == {None}


def test_a_series_of_uploads_is_refused_with_its_rule(crowd, manager, client):
    with pytest.raises(ValueError, match="tens_gate has no proof over uploads that are counted together"):
        GateWindowEvent.next_of(None, run_event(crowd.settings), window=3)
    limits = {"pool_epsilon": 9.0, "pool_delta": 1e-3, "labels_epsilon": 4.0}
    assert broken_rules(crowd.settings | limits | {"gate_window": 3}) == {"gate_window": ONE_UPLOAD_ALONE}
    with pytest.raises(InvalidConfiguration, match="cannot count uploads together"):
        configuring.configure_project(project=crowd, changes={"gate_window": 3}, actor=manager)
    with pytest.raises(IntegrityError, match="annotation_project_uploads_together"):
        write_settings(crowd, gate_window=3)


def test_a_table_that_stays_where_it_is_is_refused_with_its_rule(declared, tmp_path, settings, monkeypatch):
    settings.POOL_SOURCES = [tmp_path.as_uri()]
    table, project = write_table(tmp_path / "log"), tens_crowd()
    with pytest.raises(ValueError, match="tens_gate has no proof over a registered table"):
        GateOfSnapshotEvent(run_event(project.settings), "0a" * 32)
    with pytest.raises(InvalidUpload, match="address: this gate has no"):
        register(project, table)
    assert not registered.may_register(project)
    # Nor is one read that was registered while the project had another gate.
    with monkeypatch.context() as patch:
        patch.setattr(registered, "_refuse_project", lambda project: None)
        dataset = register(project, table)
    gates.run_gate(job_id=dataset.gate_job_id)
    job = Job.objects.get(pk=dataset.gate_job_id)
    assert (job.state, job.error) == ("failed", "tens_gate has no proof over a registered table")
    assert entries(project) == []
    assert not Query.objects.exists()


@pytest.mark.parametrize(
    "kind",
    [
        "os:system",
        "privacy.gate.engine:ProcessEngine",
        "privacy.gate.kanonymity:Normalizer",
        "annotation.choices.noisy_gate:NoisyGate",
        "privacyother:CountingGate",
    ],
)
def test_a_job_names_gates_and_no_other_code(kind):
    with pytest.raises(UnknownGate):
        gate_told({"kind": kind, "of": {}})
