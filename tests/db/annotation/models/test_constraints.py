"""Rules of the database, each broken on purpose."""

from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models.functions import Now

from annotation.models import (
    Assignment,
    Dataset,
    Encounter,
    GateRun,
    Guidelines,
    Job,
    Label,
    Project,
    Query,
    Record,
    Report,
)
from annotation.models.retention import Forgetting
from tests.factories import (
    make_candidates,
    make_project,
    make_records,
    make_reservation,
    make_user,
    open_records,
    write_settings,
)
from tests.owning import as_owner
from tests.refusing import refused

pytestmark = pytest.mark.django_db


def run_sql(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def run_as_owner(statement):
    with as_owner():
        run_sql(statement)


def make_label(query):
    assignment = Assignment.objects.create(
        project=query.project, query=query, annotator=make_user(), state="labelled", leased_until=Now()
    )
    return Label.objects.create(assignment=assignment, query=query, annotator=assignment.annotator, choice=1)


# --- labels stored with records


@pytest.mark.parametrize("classes", [["one"], [f"class {number}" for number in range(1001)], "one and two", {"a": 1}])
def test_a_project_has_two_to_a_thousand_classes(classes):
    project = make_project(classes=[f"class {number}" for number in range(1000)])
    with refused("annotation_project_classes"):
        Project.objects.filter(pk=project.pk).update(classes=classes)


def test_a_pool_record_carries_no_label():
    project = make_project()
    (private,) = make_records(project, ["a"])
    (public,) = make_records(project, ["b"], role="public_test")
    Record.objects.filter(pk=public.pk).update(label=1)
    (start,) = make_records(project, ["e"], role="public_start")
    Record.objects.filter(pk=start.pk).update(label=1)
    with refused("annotation_record_label_is_public"):
        Record.objects.filter(pk=private.pk).update(label=1)
    with refused("annotation_record_label_is_public"):
        Record.objects.create(dataset=private.dataset, row_number=9, text="c", label=0)
    with refused("annotation_record_label_is_public"):
        Record.objects.filter(pk=public.pk).update(dataset=private.dataset, row_number=5)
    with refused("annotation_record_label_is_public"), connection.cursor() as cursor:
        copied = "COPY annotation_record (dataset_id, row_number, text, label) FROM STDIN"
        with cursor.copy(copied) as copy:
            copy.write_row((private.dataset_id, 7, "d", 1))


def test_a_dataset_stays_what_it_was_and_where_it_was():
    project = make_project()
    (public,) = make_records(project, ["b"], role="public_test")
    with refused("annotation_dataset_role_fixed"):
        Dataset.objects.filter(pk=public.dataset_id).update(role="pool")
    with refused("annotation_dataset_role_fixed"):
        Dataset.objects.filter(pk=public.dataset_id).update(project=make_project())
    public.dataset.name = "renamed"
    public.dataset.save()


# --- records and their dataset


def test_records_belong_to_a_dataset_that_is_there():
    (kept,) = make_records(make_project(), ["a"])
    nowhere = kept.dataset_id + 1000
    with refused("annotation_record_has_dataset"):
        Record.objects.create(dataset_id=nowhere, row_number=0, text="b")
    # One bad row refuses the statement, wherever it stands.
    statement = "COPY annotation_record (dataset_id, row_number, text) FROM STDIN"
    with refused("annotation_record_has_dataset"), connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in ((kept.dataset_id, 1, "b"), (nowhere, 0, "c"), (kept.dataset_id, 2, "d")):
            copy.write_row(row)
    with refused("annotation_record_keeps_dataset"):
        Record.objects.update(dataset_id=nowhere)
    assert list(Record.objects.values_list("dataset_id", "row_number")) == [(kept.dataset_id, 0)]


def test_a_dataset_goes_with_its_records_or_not_at_all():
    (kept,) = make_records(make_project(), ["a"])
    run_sql("SET CONSTRAINTS ALL IMMEDIATE")  # what is still to be checked would refuse a TRUNCATE by itself
    with refused("annotation_dataset_emptied"):
        run_as_owner("TRUNCATE annotation_dataset CASCADE")
    run_sql("SET CONSTRAINTS ALL DEFERRED")
    with refused("annotation_dataset_without_records"):
        run_sql("DELETE FROM annotation_dataset WHERE id = %s", kept.dataset_id)
        run_sql("SET CONSTRAINTS ALL IMMEDIATE")
    with refused("annotation_dataset_without_records"):
        run_sql("UPDATE annotation_dataset SET id = id + 1000 WHERE id = %s", kept.dataset_id)
        run_sql("SET CONSTRAINTS ALL IMMEDIATE")
    # Until the end of the transaction their order does not matter.
    run_sql("DELETE FROM annotation_dataset WHERE id = %s", kept.dataset_id)
    run_sql("DELETE FROM annotation_record WHERE dataset_id = %s", kept.dataset_id)
    run_sql("SET CONSTRAINTS ALL IMMEDIATE")
    assert not Dataset.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_adds_records_and_who_deletes_their_dataset_wait_for_each_other():
    (kept,) = make_records(make_project(), ["a"])
    added = "INSERT INTO annotation_record (dataset_id, row_number, text) VALUES (%s, 1, 'b')"
    deleted = "DELETE FROM annotation_dataset WHERE id = %s"
    settings = connection.get_connection_params()
    with psycopg.connect(**{name: settings[name] for name in ("host", "port", "user", "password", "dbname")}) as other:
        for first, second in ((added, deleted), (deleted, added)):
            other.execute(first, [kept.dataset_id])
            run_sql("SET lock_timeout = 100")
            with pytest.raises(OperationalError, match="lock timeout"):
                run_sql(second, kept.dataset_id)
            run_sql("RESET lock_timeout")
            other.rollback()
        # A view of the rows that is older than the lock would not show them.
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute(deleted, [kept.dataset_id])
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            other.commit()
    assert Record.objects.get() == kept


# --- what a crowd sees


def test_a_crowd_is_never_asked_about_a_record():
    project = make_project(oracle="crowd")
    (record,) = make_records(project, ["secret"])
    with refused("annotation_query_fits_oracle"):
        Query.objects.create(project=project, record=record, state="unasked")
    with refused("annotation_query_fits_oracle"), connection.cursor() as cursor:
        columns = "project_id, record_id, state, priority, overlap, open_slots"
        with cursor.copy(f"COPY annotation_query ({columns}) FROM STDIN") as copy:
            copy.write_row((project.pk, record.pk, "unasked", 0, 1, 0))


def test_trusted_annotators_are_asked_about_records_of_their_project_only():
    crowd, trusted = make_project(oracle="crowd"), make_project()
    (candidate,) = make_candidates(crowd, ["passed"])
    run = GateRun.objects.get()
    with refused("annotation_query_fits_oracle"):
        Query.objects.create(project=trusted, gate_run=run, text="t", sample_count=20, state="unasked")
    with refused("annotation_query_fits_oracle"):
        Query.objects.create(
            project=make_project(oracle="crowd"), gate_run=run, text="t", sample_count=20, state="unasked"
        )
    (elsewhere,) = make_records(make_project(), ["a"])
    with refused("annotation_query_fits_oracle"):
        Query.objects.create(project=trusted, record=elsewhere, state="unasked")
    assert Query.objects.get() == candidate


def test_one_bad_question_among_many_refuses_them_all():
    project = make_project()
    records = make_records(project, [f"r{n}" for n in range(50)])
    (stranger,) = make_records(make_project(), ["a"])
    questions = [Query(project=project, record=record, state="unasked") for record in [*records, stranger]]
    with refused("annotation_query_fits_oracle"):
        Query.objects.bulk_create(questions)
    assert not Query.objects.exists()
    Query.objects.bulk_create(questions[:-1])


def test_what_a_question_shows_never_changes():
    crowd = make_project(oracle="crowd")
    first, _second = make_candidates(crowd, ["one", "two"])
    for change in ({"text": "other"}, {"sample_count": 99}, {"project": make_project(oracle="crowd")}):
        with refused("annotation_query_source_fixed"):
            Query.objects.filter(pk=first.pk).update(**change)
    (asked,) = open_records(make_project())
    (other,) = make_records(asked.project, ["b"])
    with refused("annotation_query_source_fixed"):
        Query.objects.filter(pk=asked.pk).update(record=other)
    Query.objects.filter(pk=first.pk).update(state="open", round_number=1, open_slots=1)
    first.refresh_from_db()
    first.priority = 5
    first.save()


def test_a_question_has_one_source():
    (candidate,) = make_candidates(make_project(oracle="crowd"), ["one"])
    run, project = candidate.gate_run, candidate.project
    (record,) = make_records(project, ["a"])
    for source in (
        {},
        {"gate_run": run, "text": "t", "sample_count": 1},
        {"gate_run": run, "text": "t"},
        {"gate_run": run, "sample_count": 20},
        {"record": record, "text": "t"},
        {"record": record, "gate_run": run, "text": "t", "sample_count": 20},
    ):
        with refused("annotation_query_one_source"):
            Query.objects.create(project=project, state="unasked", **source)


def test_a_text_is_one_question_of_a_project_however_long_it_is():
    long = "word " * 3000
    (candidate,) = make_candidates(make_project(oracle="crowd"), [long])
    make_candidates(make_project(oracle="crowd"), [long])
    with refused("annotation_query_text_once"):
        Query.objects.create(
            project=candidate.project, gate_run=candidate.gate_run, text=long, sample_count=30, state="unasked"
        )


def test_the_oracle_of_a_project_with_questions_never_changes():
    project = open_records(make_project())[0].project
    with refused("annotation_project_kind_fixed"):
        Project.objects.filter(pk=project.pk).update(oracle="crowd")
    project.name = "renamed"
    project.save()


# --- gate runs


def test_a_settled_gate_run_never_changes():
    (candidate,) = make_candidates(make_project(oracle="crowd"), ["one"])
    run = candidate.gate_run
    entry = make_reservation(run.project.labels_account)
    GateRun.objects.filter(pk=run.pk).update(state="committed", committed_entry=entry, passed_count=1)
    with refused("annotation_gate_run_settled"):
        GateRun.objects.filter(pk=run.pk).update(passed_count=2)
    with refused("annotation_gate_run_settled"):
        GateRun.objects.filter(pk=run.pk).update(state="running", committed_entry=None, passed_count=None)
    with refused("annotation_gate_run_settled"):
        run_sql("DELETE FROM annotation_gaterun WHERE id = %s", run.pk)


def test_a_lost_gate_run_never_comes_back():
    (candidate,) = make_candidates(make_project(oracle="crowd"), ["one"])
    run = candidate.gate_run
    GateRun.objects.filter(pk=run.pk).update(state="lost")
    with refused("annotation_gate_run_settled"):
        GateRun.objects.filter(pk=run.pk).update(state="running")


def test_an_upload_commits_one_gate_run():
    project = make_project(oracle="crowd")
    (record,) = make_records(project, ["a"])
    accounts = [project.pool_account, project.labels_account, make_project().pool_account, make_project().pool_account]
    entries = [make_reservation(account) for account in accounts]
    GateRun.objects.create(
        project=project,
        dataset=record.dataset,
        state="committed",
        reservation=entries[0],
        committed_entry=entries[1],
        passed_count=0,
    )
    with refused("annotation_gate_once_per_dataset"):
        GateRun.objects.create(
            project=project,
            dataset=record.dataset,
            state="committed",
            reservation=entries[2],
            committed_entry=entries[3],
            passed_count=0,
        )


def test_a_gate_run_is_committed_with_its_entry_or_not_at_all():
    (candidate,) = make_candidates(make_project(oracle="crowd"), ["one"])
    for change in ({"state": "committed"}, {"passed_count": 3}, {"state": "committed", "passed_count": 1}):
        with refused("annotation_gate_committed"):
            GateRun.objects.filter(pk=candidate.gate_run_id).update(**change)


# --- labels


def test_labels_are_superseded_once_and_never_rewritten():
    (query,) = open_records(make_project())
    label = make_label(query)
    for change in ({"choice": 2}, {"annotator": make_user()}, {"created_at": Now()}):
        with refused("annotation_label_fixed"):
            Label.objects.filter(pk=label.pk).update(**change)
    with refused("annotation_label_fixed"):
        Label.objects.filter(pk=label.pk).update(superseded_at=Now(), choice=2)
    Label.objects.filter(pk=label.pk).update(superseded_at=Now())
    for superseded_at in (None, "2001-01-01T00:00Z"):
        with refused("annotation_label_fixed"):
            Label.objects.filter(pk=label.pk).update(superseded_at=superseded_at)


def test_labels_are_never_deleted():
    (query,) = open_records(make_project())
    label = make_label(query)
    with refused("annotation_label_kept"):
        run_sql("DELETE FROM annotation_label WHERE id = %s", label.pk)
    run_sql("SET CONSTRAINTS ALL IMMEDIATE")  # what is still to be checked would refuse a TRUNCATE by itself
    with refused("annotation_label_kept_whole"):
        run_as_owner("TRUNCATE annotation_label")
    with refused("annotation_label_kept_whole"):
        run_as_owner("TRUNCATE annotation_query CASCADE")
    with refused("annotation_configuration_kept_whole"):  # the first of the tables under a project that refuse
        run_as_owner("TRUNCATE annotation_project CASCADE")
    assert Label.objects.get() == label


def test_an_assignment_has_one_current_label():
    (query,) = open_records(make_project())
    label = make_label(query)
    with refused("annotation_label_one_current"):
        Label.objects.create(assignment=label.assignment, query=query, annotator=label.annotator, choice=0)


# --- rows and jobs


def test_a_row_of_a_dataset_exists_once():
    (record,) = make_records(make_project(), ["a"])
    with refused("annotation_record_row"):
        Record.objects.create(dataset=record.dataset, row_number=record.row_number, text="b")


def test_a_job_is_finished_exactly_when_it_says_so():
    project = make_project()
    for fields in ({"state": "done"}, {"state": "waiting", "finished_at": Now()}):
        with refused("annotation_job_finished"):
            Job.objects.create(project=project, kind="import", **fields)
    with refused("annotation_job_progress"):
        Job.objects.create(project=project, kind="import", progress_done=-1)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"gate_kind": None}, "annotation_project_crowd_has_gate"),
        ({"gate_k": None}, "annotation_project_crowd_has_gate"),
        ({"gate_k": 1}, "annotation_configuration_declared"),
        ({"gate_sampling_rate": 1.0}, "annotation_configuration_declared"),
        ({"gate_epsilon": 0.0}, "annotation_configuration_declared"),
        ({"data_kind": "image"}, "annotation_project_crowd_has_gate"),
    ],
)
def test_a_crowd_project_has_a_gate_and_texts(fields, rule):
    with refused(rule):
        make_project(oracle="crowd", **fields)


def test_a_selection_fits_its_oracle():
    fits, declared = "annotation_project_selection_fits_oracle", "annotation_configuration_declared"
    for rule, fields in (
        (fits, {"selection": "uncertainty"}),
        (declared, {"selection": "top_c", "selection_epsilon": 0.0}),
        (fits, {"selection": "secret_sample", "selection_rate": None}),
        (declared, {"selection": "secret_sample", "selection_rate": 0.0}),
        (declared, {"selection": "secret_sample", "selection_rate": 1.0}),
        (fits, {"selection": "secret_sample", "selection_rate": 0.1, "oracle": "crowd"}),
        (fits, {"selection": "top_c", "selection_epsilon": 1.0, "oracle": "crowd"}),
        (fits, {"selection": "bernoulli_screen", "oracle": "crowd"}),
        (declared, {"selection": "bernoulli_screen", "screen_low": 0.0}),
        (fits, {"selection": "bernoulli_screen", "screen_high": 0.1, "screen_low": 0.2}),
    ):
        with refused(rule):
            make_project(**fields)
    make_project(selection="top_c", selection_epsilon=1.0)


def test_a_block_has_an_hour_to_be_answered():
    with refused("annotation_configuration_declared"):
        make_project(block_hours=0)


@pytest.mark.parametrize(
    ("estimator", "delta", "rule"),
    [
        ("logistic", 1e-6, "annotation_project_training_delta"),
        ("softmax_steps", None, "annotation_project_training_delta"),
        ("softmax_steps", 0.0, "annotation_configuration_declared"),
        ("softmax_steps", 1.0, "annotation_configuration_declared"),
    ],
)
def test_gaussian_noise_has_a_delta_and_nothing_else_has_one(estimator, delta, rule):
    with refused(rule):
        make_project(estimator=estimator, training_delta=delta)
    make_project(estimator="softmax_steps", training_delta=1e-6)


def test_the_rules_read_our_tables_and_no_temporary_ones():
    """A session may put a table of the same name before ours in its search path."""
    project = make_project(oracle="crowd")
    (record,) = make_records(project, ["secret"])
    run_sql("CREATE TEMPORARY TABLE annotation_project ON COMMIT DROP AS TABLE annotation_project")
    run_sql("UPDATE pg_temp.annotation_project SET oracle = 'trusted'")
    with refused("annotation_query_fits_oracle"):
        run_sql(
            "INSERT INTO annotation_query (project_id, record_id, state, priority, overlap, open_slots)"
            " VALUES (%s, %s, 'unasked', 0, 1, 0)",
            project.pk,
            record.pk,
        )
    assert User.objects.exists()
    with pytest.raises(DatabaseError), transaction.atomic():
        run_sql("SELECT annotation_refuse()")


# --- what annotators are told and say


def test_one_page_sends_one_answer():
    (query,) = open_records(make_project())
    label = make_label(query)
    key = uuid4()
    Label.objects.filter(pk=label.pk).update(superseded_at=Now())
    Label.objects.create(assignment=label.assignment, query=query, annotator=label.annotator, choice=0, key=key)
    Label.objects.filter(key=key).update(superseded_at=Now())
    with refused("annotation_label_key_once"):
        Label.objects.create(assignment=label.assignment, query=query, annotator=label.annotator, choice=2, key=key)


def test_the_key_of_an_answer_never_changes():
    (query,) = open_records(make_project())
    label = make_label(query)
    with refused("annotation_label_fixed"):
        Label.objects.filter(pk=label.pk).update(key=uuid4())


def test_a_version_of_the_guidelines_never_changes_and_exists_once():
    project = make_project()
    first = Guidelines.objects.create(project=project, version=1, text="as said", author=project.created_by)
    with refused("annotation_guidelines_fixed"):
        Guidelines.objects.filter(pk=first.pk).update(text="as wished")
    with refused("annotation_guidelines_version"):
        Guidelines.objects.create(project=project, version=1, text="again", author=project.created_by)


def test_a_flag_stands_once_until_it_is_resolved():
    (query,) = open_records(make_project())
    fields = {"project": query.project, "query": query, "annotator": make_user(), "kind": "broken"}
    flag = Report.objects.create(**fields)
    with refused("annotation_report_flag_once"):
        Report.objects.create(**fields)
    with refused("annotation_report_resolved"):
        Report.objects.filter(pk=flag.pk).update(resolved_at=Now())
    Report.objects.filter(pk=flag.pk).update(resolved_at=Now(), resolved_by=query.project.created_by)
    assert Report.objects.create(**fields).pk != flag.pk


def test_a_comment_says_something():
    (query,) = open_records(make_project())
    with refused("annotation_report_comment_says_something"):
        Report.objects.create(project=query.project, query=query, annotator=make_user(), kind="comment")


def test_quiet_hours_begin_and_end_at_different_times():
    project = make_project()
    for fields in ({"quiet_from": "22:00"}, {"quiet_from": "22:00", "quiet_until": "22:00:00"}):
        with refused("annotation_project_quiet_hours"):
            write_settings(project, **fields)


READ_AT_EVERY_CLICK = (
    "round_size",
    "overlap",
    "lease_seconds",
    "confirm_answers",
    "skips_to_set_aside",
    "gold_share",
    "gold_minimum",
    "aggregation",
)


@pytest.mark.parametrize("left_out", READ_AT_EVERY_CLICK)
def test_how_people_label_is_said_in_every_document(left_out):
    project = make_project()
    with refused("annotation_project_labelling_said"):
        write_settings(project, **{left_out: None})


def test_every_document_says_when_a_release_is_made():
    project = make_project()
    with refused("annotation_project_release_plan"):
        write_settings(project, labels_per_release=None)


def test_a_question_is_skipped_before_it_is_set_aside():
    project = make_project()
    with refused("annotation_configuration_declared"):
        write_settings(project, skips_to_set_aside=0)


def test_a_contributor_counts_once_for_a_person():
    project = make_project()
    fields = {"project": project, "annotator": make_user(), "contributor": b"someone"}
    Encounter.objects.create(**fields)
    with refused("annotation_encounter_once"):
        Encounter.objects.create(**fields)


def emptied_question(project):
    (query,) = open_records(project)
    label = make_label(query)
    Record.objects.filter(pk=query.record_id).update(text="", emptied=True)
    Query.objects.filter(pk=query.pk).update(state="withdrawn", open_slots=0, emptied=True)
    Label.objects.filter(pk=label.pk).update(choice=None)
    return query, label


def test_an_emptied_record_holds_nothing_and_stays_so():
    record, other = make_records(make_project(), ["one", "two"])
    with refused("annotation_record_emptied"):
        Record.objects.filter(pk=record.pk).update(emptied=True)
    Record.objects.filter(pk=record.pk).update(emptied=True, text="")
    with refused("annotation_record_stays_empty"):
        Record.objects.filter(pk=record.pk).update(text="back again", emptied=False)
    Record.objects.filter(pk=other.pk).update(text="changed")


def test_an_emptied_question_asks_nobody_and_stays_so():
    query, _label = emptied_question(make_project())
    with refused("annotation_query_stays_empty"):
        Query.objects.filter(pk=query.pk).update(state="open", emptied=False)
    (other,) = open_records(make_project())
    with refused("annotation_query_emptied"):
        Query.objects.filter(pk=other.pk).update(emptied=True)


def test_an_answer_is_erased_with_its_question_only():
    _query, erased = emptied_question(make_project())
    (other,) = open_records(make_project())
    label = make_label(other)
    with refused("annotation_label_fixed"):
        Label.objects.filter(pk=label.pk).update(choice=None)
    with refused("annotation_label_fixed"):
        Label.objects.filter(pk=erased.pk).update(choice=1)
    with refused("annotation_label_kept"):
        run_sql("DELETE FROM annotation_label WHERE id = %s", erased.pk)
    with refused("annotation_label_says_something"):
        Label.objects.create(assignment=label.assignment, query=other, annotator=label.annotator, choice=None)


def test_a_request_to_forget_keeps_no_pseudonym_once_it_is_done():
    project = make_project()
    values = {"reference": "0" * 32, "actor": "manager"}
    with refused("annotation_forgetting_forgets"):
        Forgetting.objects.create(
            project=project, job=project.jobs.create(), contributor=b"c" * 16, finished_at=Now(), **values
        )
    Forgetting.objects.create(project=project, job=project.jobs.create(), contributor=b"c" * 16, **values)
    with refused("annotation_forgetting_once"):
        Forgetting.objects.create(project=project, job=project.jobs.create(), contributor=b"c" * 16, **values)
