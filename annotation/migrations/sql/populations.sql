-- A higher limit of a population takes two of its managers, always, and each approval stands for one entry.
CREATE FUNCTION annotation_check_population_limit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    epsilon bigint := (NEW.event_json::jsonb ->> 'epsilon_limit_nano')::bigint;
    delta bigint := (NEW.event_json::jsonb ->> 'delta_limit_atto')::bigint;
    common bigint := (SELECT population.id FROM privacy_population population WHERE population.account_id = NEW.account_id);
BEGIN
    IF common IS NULL THEN
        RETURN NEW;
    END IF;
    -- The account's row is locked, so that what it is compared with is what this entry replaces.
    PERFORM FROM privacy_budgetaccount
    WHERE id = NEW.account_id AND (epsilon > epsilon_limit_nano OR delta > delta_limit_atto)
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NEW;
    END IF;
    UPDATE annotation_populationrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_populationrequest
        WHERE population_id = common AND kind = 'limit' AND state = 'approved' AND used_at IS NULL
            AND epsilon_limit_nano = epsilon AND delta_limit_atto = delta AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a higher limit of a population needs the approval of a second manager';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_population_needs_second BEFORE INSERT ON privacy_ledgerentry
    FOR EACH ROW WHEN (NEW.kind = 'limit_change') EXECUTE FUNCTION annotation_check_population_limit();

-- The first two are named at the opening; from then on one makes nobody a manager alone, and only managers decide.
CREATE FUNCTION annotation_check_population_manager() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Two appointments of one population wait for each other.
    PERFORM FROM privacy_budgetaccount account JOIN privacy_population population ON population.account_id = account.id
    WHERE population.id = NEW.population_id FOR NO KEY UPDATE OF account;
    IF (SELECT count(*) FROM annotation_populationmanager WHERE population_id = NEW.population_id) < 2 THEN
        RETURN NEW;
    END IF;
    UPDATE annotation_populationrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_populationrequest
        WHERE population_id = NEW.population_id AND kind = 'manager' AND appointee_id = NEW.user_id
            AND state = 'approved' AND used_at IS NULL AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a further manager of a population needs the approval of a second one';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_populationmanager_by_two BEFORE INSERT ON annotation_populationmanager
    FOR EACH ROW EXECUTE FUNCTION annotation_check_population_manager();

CREATE TRIGGER annotation_populationmanager_stays BEFORE UPDATE OR DELETE ON annotation_populationmanager
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('who manages a population is never rewritten');

CREATE FUNCTION annotation_check_population_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM annotation_populationmanager
        WHERE population_id = NEW.population_id AND user_id = NEW.requested_by_id
    ) OR (NEW.state IN ('approved', 'refused') AND NOT EXISTS (
        SELECT FROM annotation_populationmanager
        WHERE population_id = NEW.population_id AND user_id = NEW.decided_by_id
    )) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only managers of a population ask and decide about it';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_populationrequest_of_managers BEFORE INSERT OR UPDATE ON annotation_populationrequest
    FOR EACH ROW EXECUTE FUNCTION annotation_check_population_request();

CREATE TRIGGER annotation_populationrequest_stays BEFORE UPDATE ON annotation_populationrequest
    FOR EACH ROW WHEN (
        (OLD.population_id, OLD.kind, OLD.epsilon_limit_nano, OLD.delta_limit_atto, OLD.appointee_id,
         OLD.reason, OLD.requested_by_id, OLD.requested_at, OLD.expires_at)
        IS DISTINCT FROM
        (NEW.population_id, NEW.kind, NEW.epsilon_limit_nano, NEW.delta_limit_atto, NEW.appointee_id,
         NEW.reason, NEW.requested_by_id, NEW.requested_at, NEW.expires_at)
        OR OLD.state <> 'open' AND (OLD.state, OLD.decided_by_id, OLD.decided_at)
            IS DISTINCT FROM (NEW.state, NEW.decided_by_id, NEW.decided_at)
        OR OLD.used_at IS NOT NULL AND OLD.used_at IS DISTINCT FROM NEW.used_at
    )
    EXECUTE FUNCTION annotation_refuse('a request about a population is decided on once and never rewritten');

-- A project belongs to a population with all accounts of its records, and whatever account comes later goes with them.
CREATE FUNCTION annotation_is_in_population_of(other bigint, pool bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM privacy_quota quota WHERE quota.account_id = pool AND NOT EXISTS (
            SELECT FROM privacy_quota same WHERE same.account_id = other AND same.population_id = quota.population_id
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
            AND NEW.account_id IN (project.pool_account_id, dataset.account_id)
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

CREATE CONSTRAINT TRIGGER annotation_population_whole AFTER INSERT ON privacy_quota
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_whole_population();

-- A project of a population holds no more records of one person than were declared: what is charged for a person is so
-- many times what a record loses.
CREATE FUNCTION annotation_check_declared(asked bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    declared integer;
BEGIN
    -- Uploads and whoever joins wait for each other here, and the later one sees the rows of the earlier.
    PERFORM FROM privacy_budgetaccount account JOIN annotation_project project ON project.pool_account_id = account.id
    WHERE project.id = asked FOR NO KEY UPDATE OF account;
    SELECT quota.records_per_person INTO declared FROM annotation_project project
    JOIN privacy_budgetaccount account ON account.id = project.pool_account_id
    JOIN privacy_quota quota ON quota.account_id = account.id
    WHERE project.id = asked AND account.unit = 'record';
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
    WHERE project.pool_account_id = NEW.account_id;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER annotation_quota_as_declared AFTER INSERT ON privacy_quota
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION annotation_check_declared_of_quota();
