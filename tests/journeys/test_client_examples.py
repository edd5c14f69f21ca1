import csv
import io
import json
import os
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from annotation.models import Dataset, Role
from annotation.people.services import members
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal.command_line import main
from dpal.errors import install
from dpal.features.sentences import MULTILINGUAL
from dpal.settings import known_of
from learner.features.encoder import MultilingualEncoder
from learner.releases import storage
from learner.releases.services import versions
from learner.simulation.forecast import forecast_of
from tests import clean, documented, learning
from tests.factories import make_user
from tests.journeys.test_engineer import WITH_THE_CLIENT

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["an example", "a pear, or a hammer?", 'say "plum"']


@pytest.fixture
def project():
    opened = learning.open_trusted(make_user(), features="planned")
    learning.fill_trusted(opened)
    return opened


def token_for(project, *scopes: str, role: str = Role.ENGINEER) -> str:
    person = make_user()
    members.add_member(project=project, user=person, role=role)
    return tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]


def test_examples_have_three_lines():
    for name, script in documented.examples().items():
        if name in WITH_THE_CLIENT:
            assert len([line for line in script.splitlines() if line]) == 3, name


@pytest.mark.slow
def test_the_wheel_alone_runs_the_examples(live_server, project, tmp_path):
    programs = clean.make(tmp_path)
    learning.run_to_release(project, make_user(), version=1)
    secret = token_for(project, Scope.MODELS_READ)
    folder = tmp_path / "work"
    folder.mkdir()
    documented.write_examples(folder)
    known = {
        "SITE": live_server.url,
        "PROJECT": project.slug,
        "TOKEN": secret,
        "PUBLIC_KEY": storage.signer().public_key,
    }
    said = {}
    for name in WITH_THE_CLIENT:
        done = documented.run(name, folder, known, programs=programs)
        assert done.returncode == 0, (name, done.stderr)
        assert "Traceback" not in done.stderr
        said[name] = done.stdout
    assert "'fruit'" in said["load.py"] or "'tool'" in said["load.py"]
    assert said["guarantee.py"].startswith("(20, 0) ")
    assert "genuine: version 1 of" in said["terminal.sh"]
    assert "\nrecords: " in said["terminal.sh"] or "-differential privacy for" in said["terminal.sh"]
    assert said["terminal.sh"].splitlines()[-1] in ("fruit", "tool")
    assert said["folder.py"].startswith("1 ('fruit', 'tool')")
    header, *rows = csv.reader(io.StringIO(said["batches.sh"]))
    assert header == ["id", "text", "predicted", "probability_fruit", "probability_tool"]
    assert [row[:2] for row in rows] == [["1", "an example"], ["2", "another"]]
    # A token that others on the machine cannot read.
    (kept,) = folder.rglob("sites.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert secret not in "".join(said.values())

    # Every way in says the same as the site.
    answer = requests.post(
        f"{live_server.url}/api/v1/projects/{project.slug}/models/1/predict",
        json={"texts": TEXTS},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=120,
    ).json()

    def dpal(*arguments: str, sent: str = "") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        command = [programs / "dpal", *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, input=sent, capture_output=True, text=True, check=False, timeout=120
        )

    lines = dpal("predict", project.slug, "--batch-size", "2", sent="\n".join(TEXTS))
    assert lines.stdout.splitlines() == answer["labels"]
    objects = "".join(json.dumps({"said": text}) + "\n" for text in TEXTS)
    (folder / "new.jsonl").write_text(objects)
    written = dpal("predict", project.slug, "new.jsonl", "--probabilities", "--offline")
    told = [json.loads(line) for line in written.stdout.splitlines()]
    assert [one["said"] for one in told] == TEXTS
    assert [one["predicted"] for one in told] == answer["labels"]
    assert [one["probability_tool"] for one in told] == pytest.approx([p[1] for p in answer["probabilities"]], abs=1e-9)
    from_folder = dpal("predict", "release", "new.jsonl", "--folder", "--format", "jsonl", "-o", "new.csv")
    assert from_folder.returncode == 0, from_folder.stderr
    rows = list(csv.DictReader(io.StringIO((folder / "new.csv").read_text(), newline="")))
    assert [(row["said"], row["predicted"]) for row in rows] == list(zip(TEXTS, answer["labels"], strict=True))

    # What goes wrong is one sentence, and a file that was there stays as it was.
    (folder / "half.csv").write_text('text,x\n"a pear",1\n"a saw"\n')
    (folder / "out.csv").write_text("mine")
    for arguments, sentence in (
        (
            ("predict", project.slug, "half.csv", "-o", "out.csv", "--batch-size", "1"),
            "Line 3 of half.csv has 1 field where the header names 2",
        ),
        (("predict", project.slug, "absent.csv"), "absent.csv cannot be read"),
        (("predict", project.slug, "new.jsonl", "-o", "a/b.csv"), "a/b.csv cannot be written"),
        (("predict", project.slug, "x.parquet", "-o", "x.csv", "--offline"), "pip install 'pyarrow>=16'"),
        (("predict", project.slug, "new.csv", "--text-column", "who"), "There is no column who, only said, predicted"),
        (("predict", project.slug, "new.dat"), "say what with --format"),
        (("download", project.slug, "release"), "release is there already"),
        (("download", project.slug, "other", "--version", "3"), "no version 3 of project"),
        (("projects",), "lacks the scope projects:read"),
        (("verify", "."), "it is no complete release"),
    ):
        failed = dpal(*arguments)
        assert failed.returncode == 1, (arguments, failed.stdout)
        assert failed.stderr.startswith("Error: "), failed.stderr
        assert sentence in failed.stderr, failed.stderr
        assert len(failed.stderr.splitlines()) == 1
    assert (folder / "out.csv").read_text() == "mine"
    assert not (folder / "other").exists()
    (folder / "release" / "card.md").write_text("epsilon 0")
    changed = dpal("verify", "release")
    assert "card.md of release differs from what was signed" in changed.stderr
    assert not [path for path in folder.iterdir() if path.name.startswith(".") and path.is_file()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "encoder", "extra"),
    [
        ({"features": "encoder", "feature_dimension": 4}, "all-minilm-l6-v2-int8", "text"),
        pytest.param(
            {"features": "multilingual", "text_columns": 4},
            MULTILINGUAL,
            "multilingual",
            marks=pytest.mark.skipif(bool(MultilingualEncoder.missing()), reason=MultilingualEncoder.missing()),
        ),
    ],
)
def test_the_wheel_with_its_extra_runs_a_sentence_encoder(live_server, tmp_path, features, encoder, extra):
    project = learning.open_trusted(make_user(), **features)
    learning.fill_trusted(project)
    release = learning.run_to_release(project, make_user(), version=1)
    versions.endorse_release(release=release, reason="a test", actor=make_user())
    secret = token_for(project, Scope.MODELS_READ)
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DPAL_SITE": live_server.url, "DPAL_TOKEN": secret}

    def predict(programs: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs / "dpal", "predict", project.slug, *options],
            env=home,
            input="\n".join(TEXTS),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    plain = predict(clean.make(tmp_path / "plain"))
    assert plain.stderr.startswith(f"Error: This release needs the public sentence encoder {encoder}: {install(extra)}")
    assert (plain.returncode, plain.stdout) == (1, "")
    answer = requests.post(
        f"{live_server.url}/api/v1/projects/{project.slug}/models/1/predict",
        json={"texts": TEXTS},
        headers={"Authorization": f"Bearer {secret}"},
        timeout=120,
    ).json()
    programs = clean.make(tmp_path / "text", extra=extra)
    for options in ((), ("--offline",)):
        found = predict(programs, *options)
        assert found.stdout.splitlines() == answer["labels"], found.stderr


@pytest.mark.slow
def test_an_upload_is_sent_watched_and_charged(live_site, project, tmp_path, monkeypatch):
    live_site.start_worker()
    site = live_site.url
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPAL_CONFIG", str(tmp_path / "config"))
    monkeypatch.delenv("DPAL_TOKEN", raising=False)
    monkeypatch.delenv("DPAL_SITE", raising=False)
    secret = token_for(project, *Scope, role=Role.MANAGER)
    runner = CliRunner()

    def dpal(*arguments: str, sent: str | None = None) -> tuple[int, str]:
        done = runner.invoke(main, list(arguments), input=sent)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    assert "Which site?" in dpal("projects")[1]
    assert "does not accept the token" in dpal("login", site, sent="dpal_wrong\n")[1]
    assert known_of(site).token == ""
    assert dpal("login", site, sent=f"{secret}\n") == (0, f"Logged in to {site}.\n")
    assert project.slug in dpal("projects")[1]
    assert "(0, 0) of (20, 0) spent, one record" in dpal("budget", project.slug)[1]

    bought = forecast_of(project, records=500)
    assert bought.releases > 0
    assert dpal("plan", project.slug, "--records", "500")[1].startswith(
        f"{bought.releases} releases, {bought.rounds} rounds of 12 questions and {bought.labels} labels for 500 records"
    )
    assert "records: Input should be greater" in dpal("plan", project.slug, "--records", "3")[1]

    file = tmp_path / 'more "pears".csv'
    file.write_text("what,who\n" + "".join(f"a pear number {number},anna\n" for number in range(3000)))
    code, said = dpal("upload", project.slug, str(file), "--text-column", "what", "--watch")
    assert (code, said.splitlines()[-1].strip()) != (1, "")
    assert code == 0, said
    (uploaded,) = Dataset.objects.filter(project=project, row_count=3000)
    assert uploaded.name == file.name
    job = next(line for line in said.splitlines() if line.startswith("job ")).removeprefix("job ")
    assert str(uploaded.job_id) == job
    assert dpal("watch", job)[0] == 0

    file.write_text("what\n")
    code, said = dpal("upload", project.slug, str(file), "--text-column", "nothing", "--watch")
    assert code == 1
    assert "Error: " in said
    assert len([line for line in said.splitlines() if line.startswith("Error: ")]) == 1

    crowd = learning.open_crowd(tokens.find_token(secret=secret).user)
    file.write_text("what,who\n" + "".join(f"a pear number {number},person {number}\n" for number in range(30)))
    sent = ("upload", crowd.slug, str(file), "--text-column", "what", "--contributor-column", "who")
    code, said = dpal(*sent)
    assert code == 1
    assert "About 0.0 texts would pass the gate" in said
    assert not crowd.datasets.exists()
    assert dpal(*sent, "--confirm-few")[0] == 0
    assert crowd.datasets.exists()
