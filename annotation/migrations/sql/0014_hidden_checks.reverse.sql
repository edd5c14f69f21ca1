DROP TABLE site_cache;
DROP TRIGGER annotation_crowd_link_fits_oracle ON annotation_crowdlink;
DROP FUNCTION annotation_check_crowd_link();

CREATE OR REPLACE FUNCTION annotation_check_added_queries() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- A session's temporary tables come first in its search path; one named like ours must not be read in its place.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname = 'annotation_check_added_queries' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
    END LOOP;
END $$;
