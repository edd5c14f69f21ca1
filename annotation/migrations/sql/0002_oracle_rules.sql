-- What must stay true of records, questions and labels, whoever writes.
-- Refusals raise check_violation under the trigger's name, so that Python can tell one from another.

CREATE FUNCTION annotation_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, MESSAGE = TG_ARGV[0];
END $$;

-- A label stored beside a private record would be an answer nobody paid for.
CREATE FUNCTION annotation_check_record_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotation_dataset WHERE id = NEW.dataset_id AND role = 'public_test') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only records of a public test set carry a label';
    END IF;
    RETURN NEW;
END $$;

-- Once for each statement, not for each row: a gate's output comes in by one INSERT of many rows.
CREATE FUNCTION annotation_check_added_queries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM added JOIN annotation_project project ON project.id = added.project_id
        WHERE (project.oracle = 'crowd') <> (added.gate_run_id IS NOT NULL AND added.record_id IS NULL)
    ) OR EXISTS (
        SELECT FROM added JOIN annotation_gaterun gaterun ON gaterun.id = added.gate_run_id
        WHERE gaterun.project_id <> added.project_id
    ) OR EXISTS (
        SELECT FROM added
            JOIN annotation_record record ON record.id = added.record_id
            JOIN annotation_dataset dataset ON dataset.id = record.dataset_id
        WHERE dataset.project_id <> added.project_id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a crowd is asked about gate output of its project only, trusted annotators about its records only';
    END IF;
    RETURN NULL;
END $$;

-- The rules below read these columns once, when the row is written; changing them later would go round the rules.
CREATE TRIGGER annotation_project_oracle_fixed BEFORE UPDATE OF oracle ON annotation_project
    FOR EACH ROW WHEN (OLD.oracle IS DISTINCT FROM NEW.oracle)
    EXECUTE FUNCTION annotation_refuse('the oracle of a project never changes');
CREATE TRIGGER annotation_dataset_role_fixed BEFORE UPDATE OF role, project_id ON annotation_dataset
    FOR EACH ROW WHEN ((OLD.role, OLD.project_id) IS DISTINCT FROM (NEW.role, NEW.project_id))
    EXECUTE FUNCTION annotation_refuse('the role and the project of a dataset never change');

CREATE TRIGGER annotation_record_label_is_public BEFORE INSERT OR UPDATE OF label, dataset_id ON annotation_record
    FOR EACH ROW WHEN (NEW.label IS NOT NULL)
    EXECUTE FUNCTION annotation_check_record_label();

CREATE TRIGGER annotation_query_fits_oracle AFTER INSERT ON annotation_query
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    EXECUTE FUNCTION annotation_check_added_queries();
CREATE TRIGGER annotation_query_source_fixed
    BEFORE UPDATE OF project_id, record_id, gate_run_id, text, sample_count ON annotation_query
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.record_id, OLD.gate_run_id, OLD.text, OLD.sample_count)
        IS DISTINCT FROM (NEW.project_id, NEW.record_id, NEW.gate_run_id, NEW.text, NEW.sample_count)
    )
    EXECUTE FUNCTION annotation_refuse('what a question shows never changes');

CREATE TRIGGER annotation_gate_run_settled BEFORE UPDATE OR DELETE ON annotation_gaterun
    FOR EACH ROW WHEN (OLD.state <> 'running')
    EXECUTE FUNCTION annotation_refuse('a gate run that committed or was lost never changes');

CREATE TRIGGER annotation_label_kept BEFORE DELETE ON annotation_label
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('labels are superseded, never deleted');
CREATE TRIGGER annotation_label_kept_whole BEFORE TRUNCATE ON annotation_label
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('labels are superseded, never deleted');
CREATE TRIGGER annotation_label_fixed BEFORE UPDATE ON annotation_label
    FOR EACH ROW WHEN (
        OLD.* IS DISTINCT FROM NEW.*
        AND (
            OLD.superseded_at IS NOT NULL
            OR (OLD.id, OLD.assignment_id, OLD.query_id, OLD.annotator_id, OLD.choice, OLD.supersedes_id, OLD.created_at)
            IS DISTINCT FROM
            (NEW.id, NEW.assignment_id, NEW.query_id, NEW.annotator_id, NEW.choice, NEW.supersedes_id, NEW.created_at)
        )
    )
    EXECUTE FUNCTION annotation_refuse('labels are superseded once, never rewritten');

-- A session's temporary tables come first in its search path; one named like ours must not be read in its place.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname LIKE 'annotation\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
    END LOOP;
END $$;
