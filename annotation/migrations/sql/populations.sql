-- The first two are named at the opening; from then on one makes nobody a manager alone, and only managers decide.
CREATE FUNCTION annotation_check_budget_manager() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Two appointments of one population wait for each other.
    PERFORM FROM privacy_budgetaccount WHERE id = NEW.account_id AND key_fingerprint <> '' FOR NO KEY UPDATE;
    IF FOUND AND (SELECT count(*) FROM annotation_budgetmanager WHERE account_id = NEW.account_id) < 2 THEN
        RETURN NEW;
    END IF;
    UPDATE annotation_limitrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_limitrequest
        WHERE account_id = NEW.account_id AND kind = 'manager' AND appointee_id = NEW.user_id
            AND state = 'approved' AND used_at IS NULL AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a further manager of a population needs the approval of a second one';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_budgetmanager_by_two BEFORE INSERT ON annotation_budgetmanager
    FOR EACH ROW EXECUTE FUNCTION annotation_check_budget_manager();

CREATE TRIGGER annotation_budgetmanager_stays BEFORE UPDATE OR DELETE ON annotation_budgetmanager
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('who manages a population is never rewritten');

-- A request without a project is about a population, and the other way round.
CREATE FUNCTION annotation_check_request_of_managers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    shared CONSTANT boolean := EXISTS (
        SELECT FROM privacy_budgetaccount WHERE id = NEW.account_id AND key_fingerprint <> ''
    );
BEGIN
    IF shared <> (NEW.project_id IS NULL) OR shared AND (
        NOT EXISTS (
            SELECT FROM annotation_budgetmanager WHERE account_id = NEW.account_id AND user_id = NEW.requested_by_id
        ) OR (NEW.state IN ('approved', 'refused') AND NOT EXISTS (
            SELECT FROM annotation_budgetmanager WHERE account_id = NEW.account_id AND user_id = NEW.decided_by_id
        ))
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only managers of a population ask and decide about it';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_limitrequest_of_managers BEFORE INSERT OR UPDATE ON annotation_limitrequest
    FOR EACH ROW EXECUTE FUNCTION annotation_check_request_of_managers();

-- A project belongs to a population with all accounts of its records, and whatever account comes later goes with them.
CREATE FUNCTION annotation_is_in_population_of(other bigint, pool bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM privacy_budgetaccount quota WHERE quota.id = pool AND quota.parent_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM privacy_budgetaccount same WHERE same.id = other AND same.parent_id = quota.parent_id
        )
    )
$$;

CREATE FUNCTION annotation_check_pool_population() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT annotation_is_in_population_of(NEW.pool_account_id, OLD.pool_account_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a project stays in its population';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_keeps_population BEFORE UPDATE OF pool_account_id ON annotation_project
    FOR EACH ROW WHEN (OLD.pool_account_id IS DISTINCT FROM NEW.pool_account_id)
    EXECUTE FUNCTION annotation_check_pool_population();

CREATE FUNCTION annotation_check_start_population() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT annotation_is_in_population_of(
        NEW.account_id, (SELECT project.pool_account_id FROM annotation_project project WHERE project.id = NEW.project_id)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the account of a private start belongs to the population of its project';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_start_keeps_population BEFORE INSERT OR UPDATE OF account_id ON annotation_dataset
    FOR EACH ROW WHEN (NEW.account_id IS NOT NULL) EXECUTE FUNCTION annotation_check_start_population();

-- At the end of the transaction that joined: no account of the project was left behind.
CREATE FUNCTION annotation_check_whole_population() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_project project JOIN annotation_dataset dataset ON dataset.project_id = project.id
        WHERE dataset.account_id IS NOT NULL AND dataset.state <> 'refused'
            AND NEW.id IN (project.pool_account_id, dataset.account_id)
            AND NOT (
                annotation_is_in_population_of(dataset.account_id, project.pool_account_id)
                AND annotation_is_in_population_of(project.pool_account_id, dataset.account_id)
            )
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a project joins a population with all accounts of its records';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_population_whole AFTER UPDATE OF parent_id ON privacy_budgetaccount
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL)
    EXECUTE FUNCTION annotation_check_whole_population();

-- A project of a population holds no more records of one person than were declared: what is charged for a person is so
-- many times what a record loses.
CREATE FUNCTION annotation_check_declared(asked bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    declared integer;
BEGIN
    -- Uploads and whoever joins wait for each other here, and the later one sees the rows of the earlier.
    PERFORM FROM privacy_budgetaccount account JOIN annotation_project project ON project.pool_account_id = account.id
    WHERE project.id = asked FOR NO KEY UPDATE OF account;
    SELECT account.records_per_person INTO declared FROM annotation_project project
    JOIN privacy_budgetaccount account ON account.id = project.pool_account_id
    WHERE project.id = asked AND account.unit = 'record' AND account.parent_id IS NOT NULL;
    IF FOUND AND EXISTS (
        SELECT FROM annotation_record record JOIN annotation_dataset dataset ON dataset.id = record.dataset_id
        WHERE dataset.project_id = asked AND dataset.role = 'pool' AND dataset.state = 'ready'
            AND record.contributor IS NOT NULL
        GROUP BY record.contributor HAVING count(*) > declared
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_records_as_declared',
            MESSAGE = 'records name a person more often than was declared to the population';
    END IF;
END $$;

CREATE FUNCTION annotation_check_declared_of_dataset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM annotation_check_declared(NEW.project_id);
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_dataset_as_declared AFTER INSERT OR UPDATE OF state, role, project_id ON annotation_dataset
    FOR EACH ROW WHEN (NEW.role = 'pool' AND NEW.state = 'ready')
    EXECUTE FUNCTION annotation_check_declared_of_dataset();

CREATE FUNCTION annotation_check_declared_of_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM annotation_check_declared((SELECT dataset.project_id FROM annotation_dataset dataset WHERE dataset.id = NEW.dataset_id));
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_as_declared AFTER UPDATE OF contributor, dataset_id ON annotation_record
    FOR EACH ROW WHEN (
        NEW.contributor IS NOT NULL
        AND (OLD.contributor, OLD.dataset_id) IS DISTINCT FROM (NEW.contributor, NEW.dataset_id)
    )
    EXECUTE FUNCTION annotation_check_declared_of_record();

CREATE FUNCTION annotation_check_declared_of_quota() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM annotation_check_declared(project.id) FROM annotation_project project
    WHERE project.pool_account_id = NEW.id;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_quota_as_declared AFTER UPDATE OF parent_id ON privacy_budgetaccount
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL)
    EXECUTE FUNCTION annotation_check_declared_of_quota();
