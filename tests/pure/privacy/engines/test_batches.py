"""A batch and a step arrive in another process as they were sent, and nothing secret of the environment does."""

import json

import numpy as np
import pyarrow as pa

from privacy.engines.batches import ROOT, BatchStep, batch_bytes, batch_of, engine_environment

DOUBLE = BatchStep("tests.pure.privacy.engines.test_batches:times", "2")


def times(given):
    """Return what multiplies each number of a batch."""
    return lambda batch: pa.record_batch([pa.array(np.asarray(batch.column(0)) * int(given))], names=["number"])


def numbers(*values):
    return pa.record_batch([pa.array(values, pa.int64())], names=["number"])


def test_a_batch_is_what_it_was():
    for batch in (numbers(1, 2, 3), numbers(), pa.record_batch([pa.array(["ä", None])], names=["text"])):
        assert batch_of(bytes(batch_bytes(batch))).equals(batch)


def test_a_step_is_found_by_its_name():
    step = BatchStep(**json.loads(DOUBLE.to_json()))
    assert step == DOUBLE
    assert step.ready()(numbers(1, 2)).equals(numbers(2, 4))
    assert step.package == "tests"


def test_no_secret_of_the_environment_is_told(monkeypatch):
    for name in ("DATABASE_URL", "SECRET_KEY", "CELERY_BROKER_URL", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    told = engine_environment()
    assert "secret" not in told.values()
    assert told["PYTHONPATH"] == str(ROOT)
    assert "SPARK_CONF_DIR" not in told


def test_an_engine_is_told_what_it_names_beside(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "secret")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    told = engine_environment("SPARK_")
    assert told["SPARK_CONF_DIR"] == "/etc/spark"
    assert "secret" not in told.values()
