import hashlib
import json
import re
import sys
from datetime import timedelta

import pytest
from click.testing import CliRunner
from django.conf import settings as site_settings
from django.contrib.auth.models import Permission, User

from annotation.choices.label_types.class_sets import places_of
from annotation.models import Job, Label, Project, Role
from annotation.models.exports import Export
from annotation.models.imports import OpeningDraft
from annotation.people.services import limits, members
from annotation.tasks import export_labels_task, import_dataset_task, run_gate_task
from annotation.work.services import tokens
from annotation.work.services.tokens import Scope
from dpal import settings, statement
from dpal.command_line import main
from learner.estimators import abstaining
from learner.releases import storage
from learner.releases.selectors import thresholds_of
from learner.releases.services.described import described_release
from learner.shares import services
from learner.tasks import simulate_plan_task
from privacy.ledger.auditor.statement import SIGNED_BEFORE, signature_of
from privacy.ledger.keys import SiteKey
from tests import learning
from tests.db.learner.shares.test_services import released as with_two_models
from tests.factories import make_account, make_project, make_user, open_records
from tests.lakes import write_table

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def terminal(live_site, tmp_path, monkeypatch):
    return terminal_at(live_site.url, tmp_path, monkeypatch)


@pytest.fixture
def terminal_within(live_server, tmp_path, monkeypatch):
    return terminal_at(live_server.url, tmp_path, monkeypatch)


def terminal_at(address: str, tmp_path, monkeypatch):
    monkeypatch.setenv("DPAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPAL_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("DPAL_SITE", address)
    settings.remember(address, public_key=storage.signer().public_key)

    def become(project, role: str, *scopes: str):
        person = make_user()
        members.add_member(project=project, user=person, role=role)
        secret = tokens.create_token(user=person, name="t", scopes=list(scopes), lifetime=timedelta(days=1))[1]

        def run(*arguments: str, sent: str | None = None) -> tuple[int, str]:
            done = CliRunner().invoke(main, list(arguments), input=sent, env={"DPAL_TOKEN": secret})
            assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
            return done.exit_code, done.output

        return run

    return become


def refused(done: tuple[int, str], sentence: str) -> None:
    code, said = done
    assert code == 1
    assert said.splitlines()[-1].startswith("Error: "), said
    assert sentence in said.splitlines()[-1], said


def signed(content: bytes) -> bytes:
    before = content.rpartition(SIGNED_BEFORE)[0]
    return before + signature_of(hashlib.sha256(before).hexdigest(), SiteKey.from_secret(site_settings.SIGNING_KEY))


def test_versions_are_moved_compared_and_audited_from_a_terminal(terminal_within, tmp_path, monkeypatch):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.run_to_release(project, make_user(), version=2)
    slug = project.slug
    manager = terminal_within(project, Role.MANAGER, *Scope)
    engineer = terminal_within(project, Role.ENGINEER, "models:read", "ledger:read", "projects:write")

    none = "No channel points to a version yet; latest is the newest that is offered.\n"
    assert engineer("channels", slug) == (0, none)
    assert manager("move", slug, "stable", "1", "--reason", "first") == (0, "stable is version 1.\n")
    assert manager("move", slug, "stable", "2", "--reason", "better") == (0, "stable is version 2.\n")
    assert engineer("channels", slug) == (0, f"{'stable':20}     2  better\n")
    (told,) = json.loads(engineer("channels", slug, "--json")[1])
    assert (told["channel"], told["version"], told["reason"]) == ("stable", 2, "better")
    assert json.loads(manager("state", slug, "--json")[1])["slug"] == slug
    refused(engineer("move", slug, "stable", "1", "--reason", "r"), "one of these roles in the project: manager")
    refused(manager("move", slug, "latest", "1", "--reason", "r"), "not latest or main")
    said = engineer("predict", slug, "--version", "stable", sent="a pear\n")
    assert said[1].strip() in ("fruit", "tool")
    assert manager("rollback", slug, "stable", "--reason", "worse") == (0, "stable is version 1 again.\n")
    refused(manager("rollback", slug, "stable", "--reason", "worse"), "has no earlier version to roll")
    code, told = engineer("diff", slug, "1", "2")
    assert code == 0
    assert told.startswith("version 1 and version 2\naccuracy on rows.csv: 0.")
    assert "ε spent: " in told
    # Nine digits are counted; the tenth and what follows are the float's own.
    assert not re.search(r"epsilon: .*\.\d{10}", told)
    assert " to " in told.splitlines()[1]
    assert manager("retire", slug, "2", "--reason", "Wrong guidelines.") == (0, "Version 2 is retired.\n")
    refused(engineer("download", slug, str(tmp_path / "r"), "--version", "2"), "was retired (Wrong guidelines)")
    assert not (tmp_path / "r").exists()
    sure = engineer("predict", slug, "--version", "1", "--precision", "0.9", sent="a pear\napple pear plum 1\n")
    assert (sure[0], len(sure[1].split("\n"))) == (0, 3), sure

    file = tmp_path / "statement.json"
    assert engineer("statement", slug, str(file))[0] == 0
    code, told = engineer("audit", str(file))
    entries = sum(len(one["entries"]) for one in json.loads(file.read_bytes())["accounts"])
    key = storage.signer().public_key
    sound = f"sound: {entries} entries, signed by the key you trust\n"
    content = file.read_bytes()
    priced = content.count(b'"kind": "reserve"') + content.count(b'"kind": "post_processing"')
    assert priced > 1
    assert (code, told) == (0, f"{sound}computed anew from their parameters: the costs of {priced} entries\n")
    # Whoever holds the site's key may write another cost beside the same parameters.
    forged = signed(re.sub(rb'"epsilon_nano": ([1-9])', rb'"epsilon_nano": 9\1', content))
    assert any(
        re.search("entry \\d+: epsilon_nano is 9", one) for one in statement.audit(forged, public_key=key).faults
    )
    # Without the site's program costs are taken as they stand, and each of them is named.
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "privacy.ledger.auditor.statement", None)
        alone = statement.audit(content, public_key=key)
        assert (alone.faults, alone.recomputed, sum(map(len, alone.taken.values()))) == ((), 0, priced)
        assert not any(re.search("epsilon_nano is 9", one) for one in statement.audit(forged, public_key=key).faults)
        told = engineer("audit", str(file))[1]
        assert told.startswith(f"{sound}taken as they stand: the costs of ")
    for before, after in ((b'"reserve"', b'"reservE"'), (b'"epsilon_nano": ', b'"epsilon_nano": 1')):
        assert before in content
        file.write_bytes(content.replace(before, after, 1))
        refused(engineer("audit", str(file)), "The key you trust did not sign this statement")
    file.write_bytes(b"{}")
    refused(engineer("audit", str(file)), "This is no statement")
    refused(
        terminal_within(project, Role.ENGINEER, "models:read")("statement", slug, str(tmp_path / "s")), "ledger:read"
    )
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_questions_are_answered_in_a_terminal(terminal):
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    open_records(project, 4, round_number=9)
    annotator = terminal(project, Role.ANNOTATOR, "labels:write")
    code, said = annotator("label", project.slug, sent="7\n2\ns\n1\nq\n")
    assert code == 0
    assert "Fruit or tool?" in said
    assert "  1 fruit\n  2 tool\n" in said
    assert said.endswith("2 answered.\n")
    assert sorted(Label.objects.filter(assignment__query__project=project).values_list("choice", flat=True)) == [0, 1]
    refused(terminal(project, Role.ANNOTATOR, "models:read")("label", project.slug), "lacks the scope labels:write")


@pytest.mark.slow
def test_several_classes_are_labelled_in_a_terminal(terminal):
    project = make_project(
        question_kind="several",
        estimator="label_sets",
        training_delta=1e-6,
        labels_per_record=2,
        none_allowed=True,
        pool_account=make_account(delta_limit=1e-4),
    )
    open_records(project, 4)
    code, said = terminal(project, Role.ANNOTATOR, "labels:write")(
        "label", project.slug, sent="1,2,3\n1,1\n3, 1\n-\n2\nq\n"
    )
    assert code == 0
    assert "At most 2 of the classes." in said
    assert said.endswith("3 answered.\n")
    given = Label.objects.filter(assignment__query__project=project).order_by("pk")
    assert [places_of(choice) for choice in given.values_list("choice", flat=True)] == [(0, 2), (), (1,)]


def test_a_team_is_invited_and_a_project_run_from_a_terminal(terminal_within, tmp_path, monkeypatch):
    project = learning.open_crowd(make_user(), privacy_unit="contributor", texts_per_contributor=1)
    slug = project.slug
    manager, other = (terminal_within(project, Role.MANAGER, *Scope) for _each in range(2))
    annotator = terminal_within(project, Role.ANNOTATOR, *Scope)

    code, link = manager("invite", slug, "annotator", "--uses", "3", "--note", "the agency")
    assert code == 0
    assert re.fullmatch(r"http://\S+/join/\S+/\n", link), link
    assert (project.invitations.get().note, project.invitations.get().maximum_uses) == ("the agency", 3)
    refused(annotator("invite", slug, "manager"), "one of these roles in the project: manager")
    listed = manager("people", slug)[1]
    assert [line.split()[1:3] for line in listed.splitlines()].count(["manager", "0"]) == 3, listed

    limits.demand_second_manager(project=project)
    account = project.pool_account.scope
    changed = ("limit", slug, "--account", account, "--reason", "one more round")
    refused(manager("limit", slug, "9"), "--reason")
    code, said = manager(*changed, "900", "1e-5")
    assert code == 0
    request = project.limit_requests.get()
    assert said == f"Request {request.pk} waits for another manager: dpal decide {slug} {request.pk} approve\n"
    assert "one more round" in manager("limit", slug)[1]
    assert manager("decide", slug, str(request.pk), "approve")[0] == 1
    assert other("decide", slug, str(request.pk), "approve") == (0, f"Request {request.pk} is approved.\n")
    assert "of (900, 1e-05) spent" in manager("budget", slug)[1]

    # The worker's part is done between two looks at the job.
    work = lambda seconds: export_labels_task(job_id=str(Export.objects.get(project=project).job_id))  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setattr("dpal.team.time.sleep", work)
        code, said = manager("labels", slug, str(tmp_path / "labels.jsonl"))
    assert (code, said.splitlines()[-1]) == (0, f"The answers of {slug} are in {tmp_path / 'labels.jsonl'}."), said
    assert (tmp_path / "labels.jsonl").exists()

    assert manager("state", slug) == (0, "active\n")
    assert manager("state", slug, "paused") == (0, "paused\n")
    refused(annotator("state", slug, "active"), "one of these roles in the project: manager")
    assert manager("state", slug, "active") == (0, "active\n")

    monkeypatch.setattr(site_settings, "POOL_SOURCES", [tmp_path.as_uri()])
    address = write_table(tmp_path / "log").as_uri()
    sent = ("table", slug, address, "--text-column", "said", "--contributor-column", "who")
    refused(manager(*sent, "--most-epsilon", "1e-9"), "refuses (422)")
    code, said = manager(*sent)
    assert code == 0
    job = project.datasets.get().job_id
    assert re.fullmatch(rf"charged: epsilon [\d.]+, delta \S+\njob {job}\n", said), said
    code, said = manager("work", slug)
    assert code == 0
    assert str(job) in said
    assert "waiting" in said


def test_words_about_classes_come_from_a_file_and_the_card_says_who_wrote_them(terminal_within, tmp_path):
    project = learning.open_secret(make_user(), features="planned", text_columns=16)
    manage = terminal_within(project, Role.MANAGER, Scope.PROJECTS_READ, Scope.PROJECTS_WRITE)
    file = tmp_path / "words.csv"
    rows = [f'{name},"one, {number} of {name}"' for name in project.classes for number in range(4)]
    file.write_text("\n".join(["class,example", *rows]) + "\n")
    source = "drafted by llama-3, edited by Ada"
    code, said = manage("words", project.slug, str(file), "--source", source)
    assert (code, said) == (0, "8 examples stored; version 0 is made of them.\n")
    project.refresh_from_db()
    assert project.settings["class_descriptions"][0] == f'{project.classes[0]}: "one, 0 of {project.classes[0]}"'
    assert f"Words about the classes: {source}." in described_release(project).card
    file.write_text("label,text\na,b\n")
    refused(manage("words", project.slug, str(file), "--source", source), "must name the columns class and example")


def test_shares_are_asked_for_and_read_from_a_terminal(terminal_within):
    project = with_two_models()
    manager = terminal_within(project, Role.MANAGER, *Scope)
    refused(manager("ask-shares", project.slug, "7", "--yes"), "There is no block 7 with a model")
    assert manager("ask-shares", project.slug, "2", sent="n\n")[0] == 1
    code, said = manager("ask-shares", project.slug, "2", "--yes")
    assert code == 0
    assert re.search(r"^epsilon \d+(\.\d+)? for intervals of about \d+\.\d points", said)
    (report,) = project.shares_reports.all()
    services.measure_shares(report_id=report.pk)
    code, said = manager("shares", project.slug)
    assert said.startswith("count 1, block 2, done\n")
    assert len(said.splitlines()) == 1 + len(project.classes) + 1


def test_a_model_abstains_below_its_threshold(terminal_within, monkeypatch):
    monkeypatch.setattr(abstaining, "WANTED", {0.5: 2, 0.99: 100})
    project = with_two_models()
    manager = terminal_within(project, Role.MANAGER, *Scope)
    predict = ("predict", project.slug, "--version", "1")
    said = "apple pear plum 1\nzebra\n"
    refused(manager(*predict, "--abstain", sent=said), "ask-shares --by confidence")
    code, told = manager("ask-shares", project.slug, "2", "--by", "confidence", "--yes")
    assert code == 0
    assert re.search(r"^epsilon \d+(\.\d+)? for thresholds$", told.splitlines()[0])
    (report,) = project.shares_reports.all()
    services.measure_shares(report_id=report.pk)
    assert "right at least 50% from probability 0." in manager("shares", project.slug)[1]
    code, rows = manager(*predict, "--abstain", "0.5", "--probabilities", sent=said)
    assert code == 0
    (least,) = (one.threshold for one in thresholds_of(report_again(report)) if one.precision == 0.5)
    for row in map(json.loads, rows.splitlines()):
        sure = max(value for name, value in row.items() if name.startswith("probability_"))
        assert bool(row["predicted"]) == (sure >= least)
    refused(manager(*predict, "--abstain", sent=said), "other shares of right answers: 0.5")


def report_again(report):
    report.refresh_from_db()
    return report


def test_a_project_is_opened_from_its_files_and_simulated_in_a_terminal(terminal_within, tmp_path, monkeypatch):
    elsewhere = learning.open_trusted(make_user())
    owner = terminal_within(elsewhere, Role.MANAGER, *Scope)
    private, public = tmp_path / "tickets.csv", tmp_path / "known.csv"
    private.write_text("note\nthe parcel never came\nwonderful service\n")
    public.write_text("note,kind\n" + "late again,complaint\nthank you,praise\n" * 3)
    sent = ("open", str(private), "--public", str(public), "--epsilon", "1", "--text-column", "note")
    refused(owner(*sent, "--yes"), "may not open projects")
    User.objects.latest("pk").user_permissions.add(Permission.objects.get(codename="add_project"))
    refused(owner("open", str(private), "--yes"), "Nothing is opened: classes: ")
    code, said = owner(*sent, sent="n\n")
    assert (code, "pool tickets.csv: note as text" in said, "epsilon at most 1" in said) == (1, True, True), said
    assert not OpeningDraft.objects.exists()

    code, said = owner(*sent, "--set", "question=Which kind?", "--name", "Post", "--json", sent="y\n")
    assert code == 0, said
    told = json.loads(said[said.index("{\n") :])
    project = Project.objects.get(slug=told["project"]["slug"])
    assert (project.name, project.question, project.classes) == ("Post", "Which kind?", ["complaint", "praise"])
    assert {one["name"] for one in told["datasets"]} == {"tickets.csv", "known.csv"}

    def work(seconds):
        for job in Job.objects.filter(kind="simulate", state="waiting"):
            simulate_plan_task(job_id=str(job.pk))

    monkeypatch.setattr("dpal.team.time.sleep", work)
    code, said = owner("simulate", elsewhere.slug, "--records", "300")
    assert code == 0, said
    assert re.search(r"^digits +\d+ labels  accuracy 0\.\d+ .*without privacy", said, re.MULTILINE), said


def test_a_watched_table_has_gone_through_the_gate(terminal_within, tmp_path, monkeypatch):
    project = learning.open_crowd(make_user(), privacy_unit="contributor", texts_per_contributor=1)
    manager = terminal_within(project, Role.MANAGER, *Scope)
    monkeypatch.setattr(site_settings, "POOL_SOURCES", [tmp_path.as_uri()])
    address = write_table(tmp_path / "log").as_uri()
    tasks = {"import": import_dataset_task, "gate": run_gate_task}
    looks = iter(range(10))

    def work(seconds):
        assert next(looks, None) is not None, "nothing ends"
        for job in Job.objects.filter(project=project, state="waiting"):
            tasks[job.kind](job_id=str(job.pk))

    monkeypatch.setattr("dpal.team.time.sleep", work)
    sent = ("table", project.slug, address, "--text-column", "said", "--contributor-column", "who")
    code, said = manager(*sent, "--watch", "--json")
    assert code == 0, said
    told = json.loads(said[said.index("{\n") :])
    assert (told["job"]["state"], told["gate_job"]["state"]) == ("done", "done")
