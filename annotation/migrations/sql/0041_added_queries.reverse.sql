CREATE OR REPLACE FUNCTION annotation_check_added_queries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM added JOIN annotation_project project ON project.id = added.project_id
        WHERE (project.oracle = 'crowd') <> (
            added.record_id IS NULL AND (added.gate_run_id IS NOT NULL OR added.state = 'gold')
        )
    ) OR EXISTS (
        -- A hidden check shows a record only if that is a public, labelled example.
        SELECT FROM added
            JOIN annotation_record record ON record.id = added.record_id
            JOIN annotation_dataset dataset ON dataset.id = record.dataset_id
        WHERE added.state = 'gold' AND dataset.role <> 'public_test'
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

-- As for every function of ours: a temporary table named like one of these tables is not read in its place.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION annotation_check_added_queries() SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
END $$;
