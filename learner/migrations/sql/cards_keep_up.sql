-- A limit rises only once no card of an offered release prints a lower one: cards are issued anew first, or retired.
CREATE FUNCTION learner_check_limit_printed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    epsilon bigint := (NEW.event_json::jsonb ->> 'epsilon_limit_nano')::bigint;
    delta bigint := (NEW.event_json::jsonb ->> 'delta_limit_atto')::bigint;
BEGIN
    -- Whoever publishes a card of this account at the moment is waited for, or waits and sees the new limit.
    PERFORM FROM privacy_budgetaccount WHERE id = NEW.account_id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM learner_printedlimit printed JOIN learner_modelrelease release ON release.id = printed.release_id
        WHERE printed.account_id = NEW.account_id AND release.state <> 'retired'
            AND (printed.epsilon_limit_nano < epsilon OR printed.delta_limit_atto < delta)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the card of an offered release prints a lower limit';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER learner_limit_printed BEFORE INSERT ON privacy_ledgerentry
    FOR EACH ROW WHEN (NEW.kind = 'limit_change') EXECUTE FUNCTION learner_check_limit_printed();

-- What a card prints is never less than its account allows, and never falls.
CREATE FUNCTION learner_check_printed_limit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR TG_OP = 'UPDATE'
        AND (OLD.id, OLD.release_id, OLD.account_id) = (NEW.id, NEW.release_id, NEW.account_id)
        AND NEW.epsilon_limit_nano >= OLD.epsilon_limit_nano AND NEW.delta_limit_atto >= OLD.delta_limit_atto
    THEN
        PERFORM FROM privacy_budgetaccount WHERE id = NEW.account_id FOR SHARE;
        IF EXISTS (
            SELECT FROM privacy_budgetaccount account WHERE account.id = NEW.account_id
                AND NEW.epsilon_limit_nano >= account.epsilon_limit_nano
                AND NEW.delta_limit_atto >= account.delta_limit_atto
        ) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'learner_printed_limit_holds',
        MESSAGE = 'a card prints the limit of its account or more, and never less than it printed before';
END $$;

CREATE TRIGGER learner_printed_limit_holds BEFORE INSERT OR UPDATE OR DELETE ON learner_printedlimit
    FOR EACH ROW EXECUTE FUNCTION learner_check_printed_limit();

CREATE TRIGGER learner_printed_limit_not_emptied BEFORE TRUNCATE ON learner_printedlimit
    FOR EACH STATEMENT EXECUTE FUNCTION learner_check_printed_limit();

-- Without a note of what its card prints nothing would hold a limit back; asked at the end of the transaction.
CREATE FUNCTION learner_check_release_printed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_project project
        CROSS JOIN LATERAL (VALUES (project.pool_account_id), (project.labels_account_id)) own (account_id)
        WHERE project.id = NEW.project_id AND own.account_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM learner_printedlimit printed
            WHERE printed.release_id = NEW.id AND printed.account_id = own.account_id
        )
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a release comes with the limits its card prints';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER learner_release_prints_limits AFTER INSERT ON learner_modelrelease
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION learner_check_release_printed();

CREATE FUNCTION learner_terms_but_limits(guarantee jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(
        term - ARRAY[
            'limit_epsilon', 'limit_delta', 'limit_epsilon_when_released', 'limit_delta_when_released'
        ] ORDER BY place
    ), '[]') FROM jsonb_array_elements($1) WITH ORDINALITY AS terms (term, place)
$$;
