import json
import os
import subprocess
import sys
import zipfile

import pytest

from addons.spark.driver import error_name, packed
from addons.spark.steps import StepFailed
from dpal_site.embedded.servers import REPOSITORY
from learner.features.batches import features_step
from learner.features.text import HashingTextFeaturizer

ENDS = """
import sys, threading, time
from addons.spark.driver import Orders
orders = Orders(sys.stdin.buffer)
assert orders.next() == {"folder": sys.argv[2]}
def say_when_idle():
    while not orders.idle:
        time.sleep(0.01)
    print("idle", flush=True)
if sys.argv[1] == "busy":
    print("busy", flush=True)
    time.sleep(60)
threading.Thread(target=say_when_idle).start()
print(orders.next(), flush=True)
"""


def answered(process):
    return process.stdout.read().decode()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("doing", "code", "last"), [("busy", 1, ""), ("idle", 0, "None\n")])
def test_when_its_input_ends_it_ends(tmp_path, doing, code, last):
    (tmp_path / "left").mkdir()
    command = [sys.executable, "-c", ENDS, doing, str(tmp_path / "left")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        process.stdin.write(json.dumps({"folder": str(tmp_path / "left")}).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{doing}\n".encode()
        process.stdin.close()
        assert answered(process) == last
        assert process.wait(120) == code
    # Whoever is idle was told that there is no more to do, by somebody who clears up.
    assert (tmp_path / "left").exists() == (doing == "idle")


def test_the_archive_alone_is_the_kernel(tmp_path):
    archive = packed(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert "addons/spark/steps.py" in names
    assert all(name.startswith(("addons/", "privacy/")) and name.endswith(".py") for name in names)
    code = (
        "import addons.spark.steps as s, privacy.gate.kanonymity, sys; print(s.__file__);"
        " print({'django', 'celery', 'psycopg'} & set(sys.modules))"
    )
    told = {"PYTHONPATH": str(archive), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [sys.executable, "-P", "-c", code], env=told, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert said.splitlines() == [f"{archive}/addons/spark/steps.py", "set()"]


def test_the_archive_of_an_encoder_runs_it_alone(tmp_path):
    """Weights are a package of the executor's own; nothing of the site's web or database is needed."""
    encoder = HashingTextFeaturizer(n_features=8)
    archive = packed(tmp_path, ["learner", "privacy", *features_step(encoder).needs.split()])
    code = (
        "import sys, numpy, pyarrow\n"
        "from dpal.features import hashing\n"
        "from learner.features import encoder, batches\n"
        "made = batches.vectors_of(sys.argv[1])(batches.values_batch(['some text', '']))\n"
        "print(batches.__file__, {'django', 'celery', 'psycopg'} & set(sys.modules))\n"
        "print(hashing.__file__)\n"
        "print(batches.vectors_in(made, 8).tobytes().hex())"
    )
    told = {"PYTHONPATH": str(archive), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-P", "-W", "ignore", "-c", code, encoder.to_json()]
    said = subprocess.run(command, env=told, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    where, hashing, vectors = said.splitlines()
    assert hashing == f"{archive}/dpal/features/hashing.py"
    assert where == f"{archive}/learner/features/batches.py set()"
    assert vectors == encoder.transform(["some text", ""]).tobytes().hex()


def test_errors_have_names_and_no_words():
    told = "PythonException: Traceback ... StepFailed: step failed with PoolDamaged\n at org.apache..."
    assert error_name(RuntimeError(told)) == "PoolDamaged"
    assert error_name(StepFailed("step failed with ValueError")) == "ValueError"
    assert error_name(KeyError("a secret text")) == "KeyError"
