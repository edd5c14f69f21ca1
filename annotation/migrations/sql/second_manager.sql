-- A higher limit of a population, and of a project that asks for a second manager, stands only on an approval, and each
-- approval for one entry.
CREATE FUNCTION annotation_check_limit_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    epsilon bigint := (NEW.event_json::jsonb ->> 'epsilon_limit_nano')::bigint;
    delta bigint := (NEW.event_json::jsonb ->> 'delta_limit_atto')::bigint;
BEGIN
    -- The account's row is locked, so that what it is compared with is what this entry replaces.
    PERFORM FROM privacy_budgetaccount
    WHERE id = NEW.account_id AND (epsilon > epsilon_limit_nano OR delta > delta_limit_atto)
    FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT EXISTS (
        SELECT FROM privacy_budgetaccount WHERE id = NEW.account_id AND key_fingerprint <> ''
    ) AND NOT EXISTS (
        SELECT FROM annotation_project project
        WHERE project.second_manager AND (
            NEW.account_id IN (project.pool_account_id, project.labels_account_id)
            OR EXISTS (
                SELECT FROM annotation_dataset dataset
                WHERE dataset.project_id = project.id AND dataset.account_id = NEW.account_id
            )
        )
    ) THEN
        RETURN NEW;
    END IF;
    UPDATE annotation_limitrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_limitrequest
        WHERE account_id = NEW.account_id AND kind = 'limit' AND state = 'approved' AND used_at IS NULL
            AND epsilon_limit_nano = epsilon AND delta_limit_atto = delta AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a higher limit needs the approval of a second manager';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_limit_needs_second BEFORE INSERT ON privacy_ledgerentry
    FOR EACH ROW WHEN (NEW.kind = 'limit_change') EXECUTE FUNCTION annotation_check_limit_change();

-- Else a manager could switch the rule off, raise a limit, and switch it on again.
CREATE FUNCTION annotation_check_alone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE annotation_limitrequest SET used_at = now()
    WHERE id = (
        SELECT id FROM annotation_limitrequest
        WHERE project_id = NEW.id AND kind = 'alone' AND state = 'approved' AND used_at IS NULL AND expires_at >= now()
        ORDER BY id LIMIT 1 FOR UPDATE
    ) AND used_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'giving up the second manager needs the approval of a second manager';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_keeps_second BEFORE UPDATE OF second_manager ON annotation_project
    FOR EACH ROW WHEN (OLD.second_manager AND NOT NEW.second_manager) EXECUTE FUNCTION annotation_check_alone();

CREATE TRIGGER annotation_limitrequest_stays BEFORE UPDATE ON annotation_limitrequest
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.kind, OLD.account_id, OLD.epsilon_limit_nano, OLD.delta_limit_atto, OLD.appointee_id,
         OLD.reason, OLD.requested_by_id, OLD.requested_at, OLD.expires_at)
        IS DISTINCT FROM
        (NEW.project_id, NEW.kind, NEW.account_id, NEW.epsilon_limit_nano, NEW.delta_limit_atto, NEW.appointee_id,
         NEW.reason, NEW.requested_by_id, NEW.requested_at, NEW.expires_at)
        OR OLD.state <> 'open' AND (OLD.state, OLD.decided_by_id, OLD.decided_at)
            IS DISTINCT FROM (NEW.state, NEW.decided_by_id, NEW.decided_at)
        OR OLD.used_at IS NOT NULL AND OLD.used_at IS DISTINCT FROM NEW.used_at
    )
    EXECUTE FUNCTION annotation_refuse('a request for a limit is decided on once and never rewritten');
