"""Choosing a gate by its price, while nothing is charged; odd uploads through the gate that was chosen."""

import threading

import pytest
from django.core.files.base import ContentFile
from django.db import connection

from annotation.data.services import datasets
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.gates import comparison
from annotation.gates import services as gates
from annotation.models import GateRun, Query
from annotation.projects.services import opening
from privacy.accounting.gate import gate_delta
from tests.factories import make_records, make_user, receive_upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
THRESHOLD = {"gate_kind": "threshold", "gate_epsilon": 1.0, "gate_delta": 1e-5, "gate_floor": 2}
SAMPLED = {"gate_kind": "k_anonymity", "gate_epsilon": 0.5, "gate_k": 30, "gate_sampling_rate": 0.25}


@pytest.fixture
def crowd():
    return created()


def created(**settings):
    return opening.create_project(
        name="Voice",
        preset="voice-crowd",
        owner=make_user(),
        data_kind="text",
        classes=["music", "other"],
        question="What?",
        **({"gate_kind": "k_anonymity"} | settings),
    )


def uploaded(project, rows, *, name="pool.csv", head=b"text,who\n"):
    dataset = receive_upload(
        project=project,
        file=ContentFile(head + rows),
        name=name,
        mapping={"contributor": "who"},
        uploaded_by=make_user(),
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    return dataset


def gated(project, rows):
    dataset = uploaded(project, rows)
    gates.run_gate(job_id=dataset.gate_job_id)
    dataset.gate_job.refresh_from_db()
    return dataset


# --- price alone


@pytest.mark.parametrize(("unit", "cap"), [("record", None), ("contributor", 2)])
def test_every_offer_costs_the_price_at_most_and_one_k_less_would_cost_more(unit, cap):
    for offer in comparison.offers(1.0, 1e-6, unit=unit, texts_per_contributor=cap):
        cost = offer.choice.run_event(unit).cost()
        assert cost.epsilon == pytest.approx(1.0, abs=0.1 if offer.choice.name == "k_anonymity" and cap else 1e-6)
        assert cost.epsilon <= 1 + 1e-6
        assert cost.delta <= 1e-6 * (1 + 1e-8)
        if offer.choice.name != "threshold":
            less = gate_delta(offer.gate.k - 1, offer.gate.sampling_rate, offer.choice.gate_epsilon)
            assert offer.gate.k == 2 or less > 1e-6 / (cap or 1)


def test_the_recommendation_is_the_gate_that_needs_the_fewest():
    found = comparison.offers(1.0, 1e-6, unit="record", texts_per_contributor=None)
    best = comparison.recommended(found)
    assert best.needed == min(offer.needed for offer in found)
    assert best.choice.name == "threshold"
    shares = comparison.passing_shares(found, comparison.synthetic_log())
    assert max(share.texts for share in shares) == shares[found.index(best)].texts


# --- taking a gate over


def test_a_gate_is_taken_over_before_the_first_charge_and_then_used(crowd):
    changed = gates.choose_gate(project=crowd, settings=THRESHOLD)
    assert (changed.gate_kind, changed.gate_k, changed.texts_per_contributor) == ("threshold", None, 2)
    back = gates.choose_gate(project=crowd, settings=SAMPLED | {"normalizer": "L2"})
    assert (back.gate_k, back.gate_delta, back.normalizer) == (30, None, "L2")
    rows = b"".join(b"play jazz,person %d\n" % number for number in range(400))
    gated(back, rows)
    reserved = GateRun.objects.get().reservation
    assert reserved.event["k"] == 30
    assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]


@pytest.mark.parametrize(
    "settings",
    [
        SAMPLED | {"gate_k": 1},
        SAMPLED | {"gate_sampling_rate": 1.0},
        SAMPLED | {"gate_epsilon": 9.0},
        SAMPLED | {"gate_k": 3},
        THRESHOLD | {"gate_delta": 0.5},
        THRESHOLD | {"gate_floor": 1},
        THRESHOLD | {"normalizer": "L7"},
        THRESHOLD | {"privacy_unit": "record"},
        THRESHOLD | {"round_size": 1},
    ],
)
def test_a_gate_without_a_proof_or_beyond_the_limit_is_not_taken_over(crowd, settings):
    with pytest.raises(InvalidConfiguration):
        gates.choose_gate(project=crowd, settings=settings)
    crowd.refresh_from_db()
    assert (crowd.gate_kind, crowd.gate_k) == ("k_anonymity", 20)


def test_a_gate_is_frozen_from_the_moment_its_job_is_open(crowd):
    dataset = uploaded(crowd, b"play jazz,a\n")
    with pytest.raises(ConfigurationFrozen):
        gates.choose_gate(project=crowd, settings=THRESHOLD)
    gates.run_gate(job_id=dataset.gate_job_id)
    with pytest.raises(ConfigurationFrozen):
        gates.choose_gate(project=crowd, settings=THRESHOLD)


def test_a_gate_that_failed_before_it_was_charged_may_still_be_changed(crowd):
    dataset = uploaded(crowd, b"play jazz,a\n")
    type(dataset.gate_job).objects.filter(pk=dataset.gate_job_id).update(state="failed", finished_at=dataset.created_at)
    assert gates.choose_gate(project=crowd, settings=THRESHOLD).gate_kind == "threshold"


def test_choosing_waits_for_whoever_opens_a_gate_job(crowd, monkeypatch):
    """Both lock the project, so that no job can begin under a gate that is being replaced."""
    dataset = uploaded(crowd, b"play jazz,a\n")
    type(dataset).objects.filter(pk=dataset.pk).update(gate_job=None)
    dataset.gate_job.delete()
    opened, outcome = threading.Event(), []
    broken_rules = gates.broken_rules

    def slow(settings):
        thread.start()
        assert not opened.wait(0.5)
        return broken_rules(settings)

    def open_job():
        outcome.append(gates.start_gate(dataset=dataset))
        opened.set()
        connection.close()

    thread = threading.Thread(target=open_job)
    monkeypatch.setattr(gates, "broken_rules", slow)
    gates.choose_gate(project=crowd, settings=THRESHOLD)
    thread.join()
    assert outcome[0].project_id == crowd.pk
    gates.run_gate(job_id=outcome[0].pk)
    assert GateRun.objects.get().reservation.event["kind"] == "threshold_gate"


# --- what would pass


def test_shares_of_an_upload_are_counted_as_the_gate_would(crowd):
    lines = [b"play jazz,person %d\n" % number for number in range(300)] + [b"once %d,one\n" % n for n in range(40)]
    frequencies = gates.frequencies_of(uploaded(crowd, b"".join(lines)))
    assert frequencies.counts.tolist() == [1, 300]
    assert frequencies.texts.tolist() == [2, 1]  # one person's forty texts are capped at two
    found = comparison.offers(1.0, 1e-5, unit="contributor", texts_per_contributor=2)
    best, dearest = comparison.recommended(found), max(found, key=lambda offer: offer.needed)
    likely, unlikely = comparison.passing_shares([best, dearest], frequencies)
    assert best.needed < 100 < 300 < dearest.needed
    assert likely.texts == pytest.approx(1, abs=0.01)
    assert unlikely.texts < 0.5


# --- odd uploads


def spent(project):
    return project.pool_account.entries.latest("sequence").epsilon_spent_nano


@pytest.mark.parametrize("settings", [{}, THRESHOLD], ids=["sampled", "noisy"])
class TestOddUploads:
    def test_texts_without_a_word_are_no_texts(self, settings):
        project = created(**settings)
        dataset = gated(project, b"".join(b'"%s",p%d\n' % (text, n) for n in range(200) for text in (b" ?!", b"...")))
        assert (dataset.gate_job.state, GateRun.objects.get().passed_count) == ("done", 0)
        assert not Query.objects.exists()

    def test_an_upload_of_empty_texts_only_is_refused_unread_and_costs_nothing(self, settings):
        project = created(**settings)
        dataset = uploaded(project, b",a\n,b\n")
        assert (dataset.state, dataset.gate_job) == ("refused", None)
        assert spent(project) == 0

    def test_texts_of_a_megabyte_count_as_any_other(self, settings):
        project = created(**settings, pool_epsilon=40.0, pool_delta=0.5)
        long = "word " * 200_000
        dataset = make_records(project, [long] * 3 + ["short"] * 400)[0].dataset
        records = list(dataset.records.order_by("row_number"))
        for number, record in enumerate(records):
            record.contributor = number.to_bytes(16, "big")
        type(records[0]).objects.bulk_update(records, ["contributor"], batch_size=100)
        job = gates.start_gate(dataset=dataset)
        gates.run_gate(job_id=job.pk)
        assert list(Query.objects.values_list("text", flat=True)) == ["short"]

    def test_bytes_that_are_no_text_are_bad_rows_and_never_quoted(self, settings):
        project = created(**settings)
        rows = b"".join(b"play jazz,p%d\n" % n for n in range(400)) + b"\xff\xfesecret,p1\n"
        dataset = gated(project, rows)
        assert dataset.bad_row_count == 1
        assert "secret" not in str(dataset.bad_row_report)
        assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]

    def test_one_contributor_with_fifty_thousand_rows_counts_once(self, settings):
        project = created(**settings)
        shouted = b"".join(b"shouted,loud\nalso %d,loud\n" % (n % 50) for n in range(25_000))
        dataset = gated(project, shouted + b"".join(b"play jazz,p%d\n" % n for n in range(400)))
        assert dataset.gate_job.state == "done"
        assert list(Query.objects.values_list("text", flat=True)) == ["play jazz"]
