-- Hidden checks: in a crowd project a copied public text, elsewhere a record of a public, labelled set.

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

-- Participants of a crowd link are strangers, and a trusted project shows records.
CREATE FUNCTION annotation_check_crowd_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND oracle = 'crowd') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only a crowd project is opened to a crowd';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER annotation_crowd_link_fits_oracle BEFORE INSERT OR UPDATE OF project_id ON annotation_crowdlink
    FOR EACH ROW EXECUTE FUNCTION annotation_check_crowd_link();

-- What the rate limits of the site's pages share; nothing worth keeping through a crash.
CREATE UNLOGGED TABLE site_cache (
    cache_key varchar(255) PRIMARY KEY,
    value text NOT NULL,
    expires timestamptz NOT NULL
);
CREATE INDEX site_cache_expires ON site_cache (expires);

-- A session's temporary tables come first in its search path; one named like ours must not be read in its place.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname IN ('annotation_check_added_queries', 'annotation_check_crowd_link') AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
    END LOOP;
END $$;
