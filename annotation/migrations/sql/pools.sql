-- A pool that lies in storage as columns: the catalogue of its files says what is there, and only emptying changes it.

CREATE FUNCTION annotation_check_pool_part() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held record;
BEGIN
    -- The account first, as whoever joins a population has it: of the two, the later one sees the earlier.
    PERFORM FROM privacy_budgetaccount account JOIN annotation_project project ON project.pool_account_id = account.id
    JOIN annotation_dataset dataset ON dataset.project_id = project.id
    WHERE dataset.id = NEW.dataset_id FOR NO KEY UPDATE OF account;
    SELECT project.oracle, dataset.role, dataset.state, dataset.in_columns, EXISTS (
        SELECT FROM privacy_budgetaccount account
        WHERE account.id = project.pool_account_id AND account.unit = 'record' AND account.parent_id IS NOT NULL
    ) AS counted INTO held
    FROM annotation_dataset dataset JOIN annotation_project project ON project.id = dataset.project_id
    WHERE dataset.id = NEW.dataset_id;
    IF held.oracle <> 'crowd' OR held.role <> 'pool' OR NOT held.in_columns OR held.state <> 'receiving' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'columns in storage belong to a pool of a crowd that is being read';
    END IF;
    IF NEW.named AND held.counted THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_counted_in_database',
            MESSAGE = 'rows that a population counts by person stay in the database';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_poolpart_of_a_crowd AFTER INSERT ON annotation_poolpart
    FOR EACH ROW EXECUTE FUNCTION annotation_check_pool_part();

CREATE FUNCTION annotation_check_pool_part_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.id, OLD.dataset_id, OLD.number, OLD.first_row, OLD.row_count)
            IS DISTINCT FROM (NEW.id, NEW.dataset_id, NEW.number, NEW.first_row, NEW.row_count)
        OR NEW.emptied_count <= OLD.emptied_count OR NEW.file = OLD.file OR NEW.sha256 = OLD.sha256
        OR (NEW.named AND NOT OLD.named)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a file of a pool is only rewritten with more empty slots';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_poolpart_only_emptied BEFORE UPDATE ON annotation_poolpart
    FOR EACH ROW EXECUTE FUNCTION annotation_check_pool_part_change();

CREATE FUNCTION annotation_check_pool_part_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_dataset dataset JOIN annotation_project project ON project.id = dataset.project_id
        WHERE dataset.id = OLD.dataset_id AND dataset.state = 'ready' AND project.state <> 'deleted'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a file of a pool stays in the catalogue while its project stands';
    END IF;
    RETURN OLD;
END $$;

CREATE TRIGGER annotation_poolpart_stays BEFORE DELETE ON annotation_poolpart
    FOR EACH ROW EXECUTE FUNCTION annotation_check_pool_part_gone();

-- A pool lies in files of the site, or in those of a table that was registered where it is, and never in both.
CREATE FUNCTION annotation_pool_files(pool bigint) RETURNS TABLE (number integer, first_row bigint, row_count bigint)
LANGUAGE sql STABLE AS $$
    SELECT number, first_row, row_count FROM annotation_poolpart WHERE dataset_id = pool
    UNION ALL SELECT number, first_row, row_count FROM annotation_sourcefile WHERE source_id = pool
$$;

-- What a pool holds is in its catalogue, without a gap: coins belong to the places of rows.
CREATE FUNCTION annotation_check_pool_whole() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.row_count <> (SELECT coalesce(sum(row_count), 0) FROM annotation_pool_files(NEW.id))
        OR EXISTS (SELECT FROM annotation_poolsource WHERE dataset_id = NEW.id AND snapshot = '')
        OR EXISTS (
            SELECT FROM (
                SELECT first_row, number,
                    coalesce(sum(row_count) OVER (ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
                    AS before, row_number() OVER (ORDER BY number) - 1 AS place
                FROM annotation_pool_files(NEW.id)
            ) part WHERE part.first_row <> part.before OR part.number <> part.place
        )
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the files of a pool hold its rows, each once and in order';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_pool_whole AFTER INSERT OR UPDATE OF state, row_count ON annotation_dataset
    FOR EACH ROW WHEN (NEW.in_columns AND NEW.state = 'ready')
    EXECUTE FUNCTION annotation_check_pool_whole();

CREATE TRIGGER annotation_dataset_columns_fixed BEFORE UPDATE OF in_columns ON annotation_dataset
    FOR EACH ROW WHEN (OLD.in_columns IS DISTINCT FROM NEW.in_columns AND OLD.state <> 'receiving')
    EXECUTE FUNCTION annotation_refuse('where the rows of an upload lie is settled before it is ready');

-- A population that counts records by person counts rows of the database.
CREATE FUNCTION annotation_check_quota_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_project project JOIN privacy_budgetaccount account
            ON account.id = project.pool_account_id AND account.unit = 'record'
        JOIN annotation_dataset dataset ON dataset.project_id = project.id
        JOIN annotation_poolpart part ON part.dataset_id = dataset.id AND part.named
        WHERE project.pool_account_id = NEW.id
    ) OR EXISTS (
        SELECT FROM annotation_project project JOIN privacy_budgetaccount account
            ON account.id = project.pool_account_id AND account.unit = 'record'
        JOIN annotation_dataset dataset ON dataset.project_id = project.id
        JOIN annotation_poolsource source ON source.dataset_id = dataset.id
        WHERE project.pool_account_id = NEW.id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_counted_in_database',
            MESSAGE = 'rows that a population counts by person stay in the database';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_quota_counts_rows AFTER UPDATE OF parent_id ON privacy_budgetaccount
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL)
    EXECUTE FUNCTION annotation_check_quota_counts();
