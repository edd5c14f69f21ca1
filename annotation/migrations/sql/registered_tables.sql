-- A table of somebody else's as a crowd's pool: its rows are nowhere here, and what was read of it stands for good.

CREATE FUNCTION annotation_check_pool_source() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held record;
BEGIN
    -- The account first, as whoever joins a population has it: of the two, the later one sees the earlier.
    PERFORM FROM privacy_budgetaccount account JOIN annotation_project project ON project.pool_account_id = account.id
    JOIN annotation_dataset dataset ON dataset.project_id = project.id
    WHERE dataset.id = NEW.dataset_id FOR NO KEY UPDATE OF account;
    SELECT project.oracle, project.arrival, project.data_kind, dataset.role, dataset.state, dataset.in_columns,
        annotation_settings(project.configuration_id) ->> 'gate_window' AS window, EXISTS (
            SELECT FROM privacy_budgetaccount account
            WHERE account.id = project.pool_account_id AND account.unit = 'record' AND account.parent_id IS NOT NULL
        ) AS counted INTO held
    FROM annotation_dataset dataset JOIN annotation_project project ON project.id = dataset.project_id
    WHERE dataset.id = NEW.dataset_id;
    IF (held.oracle, held.arrival, held.data_kind, held.role) <> ('crowd', 'pool', 'text', 'pool')
        OR NOT held.in_columns OR held.state <> 'receiving' OR NEW.snapshot <> ''
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a table is registered as a pool of texts for a crowd';
    END IF;
    IF held.window IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_table_by_itself',
            MESSAGE = 'snapshots of a table share records, so none is counted together with other uploads';
    END IF;
    IF held.counted THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_counted_in_database',
            MESSAGE = 'rows that a population counts by person stay in the database';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_poolsource_of_a_crowd AFTER INSERT ON annotation_poolsource
    FOR EACH ROW EXECUTE FUNCTION annotation_check_pool_source();

CREATE FUNCTION annotation_check_source_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.dataset_id, OLD.address, OLD.secret) IS DISTINCT FROM (NEW.dataset_id, NEW.address, NEW.secret)
        OR OLD.snapshot <> '' OR NEW.snapshot = ''
        -- A snapshot that was asked for by its number is the one that is read.
        OR (OLD.format_snapshot ->> 'snapshot') <> COALESCE(NEW.format_snapshot ->> 'snapshot', '')
        OR (SELECT state FROM annotation_dataset WHERE id = OLD.dataset_id) <> 'receiving'
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a table has the snapshot that was read when it was registered';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_poolsource_fixed BEFORE UPDATE ON annotation_poolsource
    FOR EACH ROW EXECUTE FUNCTION annotation_check_source_change();

CREATE FUNCTION annotation_check_source_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT state FROM annotation_dataset WHERE id = NEW.source_id) <> 'receiving' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the files of a registered table are those that were read then';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_sourcefile_in_time BEFORE INSERT ON annotation_sourcefile
    FOR EACH ROW EXECUTE FUNCTION annotation_check_source_file();

CREATE TRIGGER annotation_sourcefile_fixed BEFORE UPDATE ON annotation_sourcefile
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a file of a registered table never changes');

CREATE FUNCTION annotation_check_source_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_dataset dataset JOIN annotation_project project ON project.id = dataset.project_id
        WHERE dataset.id = (to_jsonb(OLD) ->> TG_ARGV[0])::bigint
            AND dataset.state = 'ready' AND project.state <> 'deleted'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a registered table stays in the catalogue while its project stands';
    END IF;
    RETURN OLD;
END $$;

CREATE TRIGGER annotation_poolsource_stays BEFORE DELETE ON annotation_poolsource
    FOR EACH ROW EXECUTE FUNCTION annotation_check_source_gone('dataset_id');

CREATE TRIGGER annotation_sourcefile_stays BEFORE DELETE ON annotation_sourcefile
    FOR EACH ROW EXECUTE FUNCTION annotation_check_source_gone('source_id');

-- Rows of a table are compared with nothing, since nobody reads them before they are paid for. So no data of another
-- role stand beside one, which might hold the same rows.
CREATE FUNCTION annotation_check_table_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Whoever makes another upload ready waits here, and then sees this one.
    PERFORM FROM annotation_project WHERE id = NEW.project_id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM annotation_poolsource source JOIN annotation_dataset pool ON pool.id = source.dataset_id
        JOIN annotation_dataset other ON other.project_id = pool.project_id AND other.role <> pool.role
        WHERE pool.project_id = NEW.project_id AND pool.state = 'ready' AND other.state = 'ready'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_table_alone',
            MESSAGE = 'no data of another role stand beside a registered table';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_dataset_beside_table AFTER INSERT OR UPDATE OF state ON annotation_dataset
    FOR EACH ROW WHEN (NEW.state = 'ready') EXECUTE FUNCTION annotation_check_table_alone();
