-- What must stay true of records, questions and labels, whoever writes.
-- Refusals raise check_violation under the trigger's name, so that Python can tell one from another.

CREATE FUNCTION annotation_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, MESSAGE = TG_ARGV[0];
END $$;

-- A label stored beside a pool's record would be an answer nobody paid for; a charged start pays for its own.
CREATE FUNCTION annotation_check_record_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM annotation_dataset
        WHERE id = NEW.dataset_id AND role IN ('public_test', 'public_start', 'charged_start')
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'no record of a pool carries a label';
    END IF;
    RETURN NEW;
END $$;

-- A question's record is looked up by its id, whatever the planner believes. Statistics taken while an upload came in
-- say that there are no records; a join may then go through all of them for each question, which takes minutes.

CREATE FUNCTION annotation_check_added_queries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM added JOIN annotation_project project ON project.id = added.project_id
        WHERE (project.oracle = 'crowd') <> (
            added.record_id IS NULL AND (added.gate_run_id IS NOT NULL OR added.state = 'gold')
        )
    ) OR EXISTS (
        -- A hidden check shows a record only if that is a public, labelled example.
        SELECT FROM added
        WHERE added.state = 'gold' AND added.record_id IS NOT NULL AND (
            SELECT dataset.role FROM annotation_dataset dataset
            WHERE dataset.id = (SELECT record.dataset_id FROM annotation_record record WHERE record.id = added.record_id)
        ) <> 'public_test'
    ) OR EXISTS (
        SELECT FROM added JOIN annotation_gaterun gaterun ON gaterun.id = added.gate_run_id
        WHERE gaterun.project_id <> added.project_id
    ) OR EXISTS (
        SELECT FROM added
        WHERE added.record_id IS NOT NULL AND (
            SELECT dataset.project_id FROM annotation_dataset dataset
            WHERE dataset.id = (SELECT record.dataset_id FROM annotation_record record WHERE record.id = added.record_id)
        ) <> added.project_id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a crowd is asked about gate output of its project only, trusted annotators about its records only';
    END IF;
    RETURN NULL;
END $$;

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
    BEFORE UPDATE OF project_id, record_id, gate_run_id, text, sample_count, noisy_count, guess ON annotation_query
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.record_id, OLD.gate_run_id, OLD.text, OLD.sample_count, OLD.noisy_count, OLD.guess)
        IS DISTINCT FROM
        (NEW.project_id, NEW.record_id, NEW.gate_run_id, NEW.text, NEW.sample_count, NEW.noisy_count, NEW.guess)
    )
    EXECUTE FUNCTION annotation_refuse('what a question shows never changes');

CREATE TRIGGER annotation_gate_run_settled BEFORE UPDATE OR DELETE ON annotation_gaterun
    FOR EACH ROW WHEN (OLD.state <> 'running')
    EXECUTE FUNCTION annotation_refuse('a gate run that committed or was lost never changes');

-- A run is paid for as the project says, and an upload stands in a series of runs as one epoch: else its records were
-- counted more often than was paid for.
CREATE FUNCTION annotation_check_gate_run() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    chosen jsonb;
    charged privacy_ledgerentry%ROWTYPE;
    event jsonb;
BEGIN
    -- Runs of one project queue here; each then sees those before it.
    SELECT annotation_settings(configuration_id) INTO chosen
    FROM annotation_project WHERE id = NEW.project_id FOR NO KEY UPDATE;
    SELECT * INTO charged FROM privacy_ledgerentry WHERE id = NEW.reservation_id;
    event := charged.event_json;
    IF (chosen ->> 'gate_window') IS DISTINCT FROM (event ->> 'window') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'what a run counts together is not what was paid for';
    END IF;
    -- Which snapshot of a registered table a run reads stands in what was paid, and in nothing else that was.
    IF (SELECT snapshot FROM annotation_poolsource WHERE dataset_id = NEW.dataset_id)
        IS DISTINCT FROM (event ->> 'snapshot')
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_gate_run_snapshot',
            MESSAGE = 'a run over a registered table is paid with its snapshot';
    END IF;
    IF event ->> 'kind' IN ('gate_window', 'composed_gate_window') AND (
        charged.subject <> 'dataset:' || NEW.dataset_id OR EXISTS (
            SELECT FROM annotation_gaterun run JOIN privacy_ledgerentry paid ON paid.id = run.reservation_id
            WHERE run.project_id = NEW.project_id
                AND (paid.event_json::jsonb ->> 'epoch' = event ->> 'epoch') <> (run.dataset_id = NEW.dataset_id)
        )
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'an upload is one epoch of a series of runs';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_gate_run_paid BEFORE INSERT ON annotation_gaterun
    FOR EACH ROW EXECUTE FUNCTION annotation_check_gate_run();

CREATE TRIGGER annotation_label_kept_whole BEFORE TRUNCATE ON annotation_label
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('labels are superseded, never deleted');
