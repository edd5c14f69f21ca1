-- The promises of the ledger, kept by the database whoever writes.
-- Every refusal carries a constraint name, so that Python can tell one from another.

CREATE FUNCTION privacy_refuse(rule text, explanation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = rule, MESSAGE = explanation;
END $$;

-- What the hash covers: a JSON array in this order. Numbers are integers and times are microseconds since 1970,
-- so any language can write the same text.
CREATE FUNCTION privacy_entry_text(entry privacy_ledgerentry) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(
        entry.id, entry.account_id, entry.sequence, entry.kind, entry.parent_id,
        entry.mechanism, entry.subject, entry.purpose, entry.event_json,
        entry.epsilon_nano, entry.delta_atto, entry.rho_nano, entry.mi_nano,
        entry.epsilon_spent_nano, entry.delta_spent_atto, entry.rho_spent_nano, entry.mi_spent_nano,
        entry.epsilon_reserved_nano, entry.delta_reserved_atto, entry.rho_reserved_nano, entry.mi_reserved_nano,
        entry.open_reservations, entry.idempotency_key, entry.output_digest, entry.actor, entry.reason,
        (extract(epoch FROM entry.created_at) * 1000000)::bigint, entry.previous_hash
    )::text
$$;

-- Terms and limits are written into the event of a grant or a limit change, and so into the chain.
CREATE FUNCTION privacy_check_limits(account privacy_budgetaccount, terms jsonb, last privacy_ledgerentry)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    epsilon_limit bigint := terms ->> 'epsilon_limit_nano';
    delta_limit bigint := terms ->> 'delta_limit_atto';
    delta_sum_limit bigint := terms ->> 'delta_sum_limit_atto';
    rho_limit bigint := terms ->> 'rho_limit_nano';
    rho numeric;
    delta_rest numeric;
BEGIN
    IF (terms ->> 'scope', terms ->> 'unit', terms ->> 'adjacency', terms ->> 'filter')
        IS DISTINCT FROM (account.scope::text, account.unit::text, account.adjacency::text, account.filter::text)
    THEN
        PERFORM privacy_refuse('privacy_entry_terms', 'the event names other terms than the account');
    END IF;
    IF epsilon_limit IS NULL OR delta_limit IS NULL OR delta_sum_limit IS NULL
        OR (rho_limit IS NULL) <> (account.filter = 'pure')
    THEN
        PERFORM privacy_refuse('privacy_entry_limits', 'the event does not name every limit');
    END IF;
    IF account.filter = 'zcdp' THEN
        -- Exact numeric arithmetic: epsilon = rho + 2 sqrt(rho ln(1 / rest of delta)) must stay within the limit.
        delta_rest := (delta_limit - delta_sum_limit) / 1e18::numeric(40, 20);
        rho := rho_limit / 1e9::numeric(40, 20);
        IF delta_rest <= 0 OR rho < 0 OR rho + 2 * sqrt(rho * -ln(delta_rest)) > epsilon_limit / 1e9::numeric(40, 20)
        THEN
            PERFORM privacy_refuse('privacy_entry_limits', 'rho does not convert into the epsilon and delta granted');
        END IF;
    END IF;
    IF last.delta_spent_atto > delta_sum_limit
        OR (account.filter = 'pure' AND last.epsilon_spent_nano > epsilon_limit)
        OR (account.filter = 'zcdp' AND last.rho_spent_nano > rho_limit)
    THEN
        PERFORM privacy_refuse('privacy_limit_above_spent', 'the limit would fall below what is spent');
    END IF;
END $$;

-- Is the output behind this entry committed? Only then may something descend from it.
CREATE FUNCTION privacy_is_committed(entry privacy_ledgerentry) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT entry.kind IN ('commit', 'post_processing') OR entry.kind = 'reserve' AND EXISTS (
        SELECT FROM privacy_ledgerentry AS settlement
        WHERE settlement.parent_id = entry.id AND settlement.kind = 'commit'
    )
$$;

CREATE FUNCTION privacy_is_void(entry_id bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM privacy_ledgerentry AS settlement
        WHERE settlement.parent_id = entry_id AND settlement.kind = 'void'
    )
$$;

-- Admit one entry: number it, add it up, chain it, or refuse it.
CREATE FUNCTION privacy_admit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    genesis CONSTANT text := repeat('0', 64);
    account privacy_budgetaccount%ROWTYPE;
    last privacy_ledgerentry%ROWTYPE;
    parent privacy_ledgerentry%ROWTYPE;
    event jsonb;
    spent_sign integer := 0;
    reserved_sign integer := 0;
BEGIN
    -- Writers of one account queue here; each next statement then sees what the one before committed.
    SELECT * INTO account FROM privacy_budgetaccount WHERE id = NEW.account_id FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM privacy_refuse('privacy_entry_account', 'no such account');
    END IF;
    SELECT * INTO last FROM privacy_ledgerentry WHERE account_id = NEW.account_id ORDER BY sequence DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT 0, genesis, 0, 0, 0, 0, 0, 0, 0, 0, 0
        INTO last.sequence, last.hash, last.open_reservations,
            last.epsilon_spent_nano, last.delta_spent_atto, last.rho_spent_nano, last.mi_spent_nano,
            last.epsilon_reserved_nano, last.delta_reserved_atto, last.rho_reserved_nano, last.mi_reserved_nano;
    END IF;

    IF NEW.sequence NOT IN (0, last.sequence + 1) OR NEW.previous_hash NOT IN (genesis, last.hash) THEN
        PERFORM privacy_refuse('privacy_entry_in_sequence', 'the entry does not follow the last one');
    END IF;
    IF (NEW.kind = 'grant') <> (last.sequence = 0) THEN
        PERFORM privacy_refuse('privacy_entry_grant_first', 'an account begins with its only grant');
    END IF;
    NEW.sequence := last.sequence + 1;
    NEW.previous_hash := last.hash;
    -- Whole seconds: engineers and auditors read this time, the hash covers it, and how long a step took to the
    -- millisecond is an output of what it read.
    NEW.created_at := date_trunc('second', clock_timestamp());
    event := NEW.event_json;

    IF NEW.parent_id IS NOT NULL THEN
        SELECT * INTO parent FROM privacy_ledgerentry WHERE id = NEW.parent_id;
        IF NOT FOUND OR parent.account_id <> NEW.account_id THEN
            PERFORM privacy_refuse('privacy_entry_same_account', 'the parent is not an entry of this account');
        END IF;
    END IF;

    CASE NEW.kind
    WHEN 'grant', 'limit_change' THEN
        PERFORM privacy_check_limits(account, event, last);
    WHEN 'reserve' THEN
        spent_sign := 1;
        reserved_sign := 1;
        IF (account.filter = 'pure' AND NEW.epsilon_nano IS NULL) OR (account.filter = 'zcdp' AND NEW.rho_nano IS NULL)
        THEN
            PERFORM privacy_refuse('privacy_entry_finite_cost', 'the event has no finite cost under this filter');
        END IF;
        IF NEW.parent_id IS NOT NULL AND (parent.kind <> 'reserve' OR privacy_is_void(parent.id)) THEN
            PERFORM privacy_refuse('privacy_entry_series', 'a series continues from a standing reservation');
        END IF;
    WHEN 'commit', 'charge', 'void' THEN
        reserved_sign := -1;
        IF parent.kind IS DISTINCT FROM 'reserve' THEN
            PERFORM privacy_refuse('privacy_entry_settles_reservation', 'only a reservation can be settled');
        END IF;
        IF (NEW.epsilon_nano, NEW.delta_atto, NEW.rho_nano, NEW.mi_nano)
            IS DISTINCT FROM (parent.epsilon_nano, parent.delta_atto, parent.rho_nano, parent.mi_nano)
        THEN
            PERFORM privacy_refuse('privacy_entry_settles_amount', 'the settlement differs from the reservation');
        END IF;
        IF NEW.kind = 'void' THEN
            spent_sign := -1;
            IF EXISTS (
                SELECT FROM privacy_ledgerentry AS child
                WHERE child.parent_id = parent.id AND child.kind = 'reserve' AND NOT privacy_is_void(child.id)
            ) THEN
                PERFORM privacy_refuse('privacy_entry_series', 'the series this reservation opened still stands');
            END IF;
        END IF;
        NEW.mechanism := parent.mechanism;
        NEW.subject := parent.subject;
    WHEN 'post_processing' THEN
        IF privacy_is_committed(parent) IS NOT TRUE THEN
            PERFORM privacy_refuse('privacy_entry_ancestor_committed', 'the output it descends from is not committed');
        END IF;
    ELSE
        PERFORM privacy_refuse('privacy_entry_kind', 'no such kind of entry');
    END CASE;

    NEW.epsilon_spent_nano := last.epsilon_spent_nano + spent_sign * coalesce(NEW.epsilon_nano, 0);
    NEW.delta_spent_atto := last.delta_spent_atto + spent_sign * NEW.delta_atto;
    NEW.rho_spent_nano := last.rho_spent_nano + spent_sign * coalesce(NEW.rho_nano, 0);
    NEW.mi_spent_nano := last.mi_spent_nano + spent_sign * coalesce(NEW.mi_nano, 0);
    NEW.epsilon_reserved_nano := last.epsilon_reserved_nano + reserved_sign * coalesce(NEW.epsilon_nano, 0);
    NEW.delta_reserved_atto := last.delta_reserved_atto + reserved_sign * NEW.delta_atto;
    NEW.rho_reserved_nano := last.rho_reserved_nano + reserved_sign * coalesce(NEW.rho_nano, 0);
    NEW.mi_reserved_nano := last.mi_reserved_nano + reserved_sign * coalesce(NEW.mi_nano, 0);
    NEW.open_reservations := last.open_reservations + reserved_sign;

    IF NEW.kind = 'reserve' AND (
        NEW.delta_spent_atto > account.delta_sum_limit_atto
        OR (account.filter = 'pure' AND NEW.epsilon_spent_nano > account.epsilon_limit_nano)
        OR (account.filter = 'zcdp' AND NEW.rho_spent_nano > account.rho_limit_nano)
    ) THEN
        PERFORM privacy_refuse('privacy_ledger_within_limit', 'the account cannot pay for this operation');
    END IF;

    NEW.hash := encode(sha256(convert_to(privacy_entry_text(NEW), 'UTF8')), 'hex');
    RETURN NEW;
END $$;

CREATE FUNCTION privacy_apply_limits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    terms CONSTANT jsonb := NEW.event_json;
BEGIN
    UPDATE privacy_budgetaccount SET
        epsilon_limit_nano = (terms ->> 'epsilon_limit_nano')::bigint,
        delta_limit_atto = (terms ->> 'delta_limit_atto')::bigint,
        delta_sum_limit_atto = (terms ->> 'delta_sum_limit_atto')::bigint,
        rho_limit_nano = (terms ->> 'rho_limit_nano')::bigint
    WHERE id = NEW.account_id;
    RETURN NULL;
END $$;

CREATE FUNCTION privacy_open_empty() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.epsilon_limit_nano, NEW.delta_limit_atto, NEW.delta_sum_limit_atto) <> (0, 0, 0)
        OR NEW.rho_limit_nano IS NOT NULL
    THEN
        PERFORM privacy_refuse('privacy_account_by_entry_only', 'an account gets its limits from a grant entry');
    END IF;
    NEW.created_at := clock_timestamp();
    RETURN NEW;
END $$;

-- Checked against the last entry, not against who is asking: no other trigger or session can slip a limit in.
CREATE FUNCTION privacy_follow_entries() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last privacy_ledgerentry%ROWTYPE;
    terms jsonb;
BEGIN
    IF (NEW.id, NEW.scope, NEW.unit, NEW.adjacency, NEW.filter, NEW.created_at)
        IS DISTINCT FROM (OLD.id, OLD.scope, OLD.unit, OLD.adjacency, OLD.filter, OLD.created_at)
    THEN
        PERFORM privacy_refuse('privacy_account_terms_fixed', 'scope, unit, adjacency and filter are fixed at creation');
    END IF;
    IF (NEW.epsilon_limit_nano, NEW.delta_limit_atto, NEW.delta_sum_limit_atto, NEW.rho_limit_nano)
        IS DISTINCT FROM (OLD.epsilon_limit_nano, OLD.delta_limit_atto, OLD.delta_sum_limit_atto, OLD.rho_limit_nano)
    THEN
        SELECT * INTO last FROM privacy_ledgerentry WHERE account_id = NEW.id ORDER BY sequence DESC LIMIT 1;
        IF FOUND AND last.kind IN ('grant', 'limit_change') THEN
            terms := last.event_json;
        END IF;
        IF terms IS NULL
            OR (NEW.epsilon_limit_nano, NEW.delta_limit_atto, NEW.delta_sum_limit_atto, NEW.rho_limit_nano)
            IS DISTINCT FROM (
                (terms ->> 'epsilon_limit_nano')::bigint, (terms ->> 'delta_limit_atto')::bigint,
                (terms ->> 'delta_sum_limit_atto')::bigint, (terms ->> 'rho_limit_nano')::bigint
            )
        THEN
            PERFORM privacy_refuse('privacy_account_by_entry_only', 'limits change by an entry only');
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION privacy_keep_forever() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM privacy_refuse(
        'privacy_append_only', format('%s of %s is refused: the ledger only grows', lower(TG_OP), TG_TABLE_NAME)
    );
    RETURN NULL;
END $$;

CREATE TRIGGER privacy_entry_admit BEFORE INSERT ON privacy_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION privacy_admit_entry();

CREATE TRIGGER privacy_entry_limits AFTER INSERT ON privacy_ledgerentry
    FOR EACH ROW WHEN (NEW.kind IN ('grant', 'limit_change')) EXECUTE FUNCTION privacy_apply_limits();

CREATE TRIGGER privacy_entry_forever BEFORE UPDATE OR DELETE OR TRUNCATE ON privacy_ledgerentry
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();

CREATE TRIGGER privacy_account_open BEFORE INSERT ON privacy_budgetaccount
    FOR EACH ROW EXECUTE FUNCTION privacy_open_empty();

CREATE TRIGGER privacy_account_follow BEFORE UPDATE ON privacy_budgetaccount
    FOR EACH ROW EXECUTE FUNCTION privacy_follow_entries();

CREATE TRIGGER privacy_account_forever BEFORE DELETE OR TRUNCATE ON privacy_budgetaccount
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();

-- ALWAYS: also where a session poses as a replica, which silences ordinary triggers.
ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_admit;

ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_limits;

ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_forever;

ALTER TABLE privacy_budgetaccount ENABLE ALWAYS TRIGGER privacy_account_open;

ALTER TABLE privacy_budgetaccount ENABLE ALWAYS TRIGGER privacy_account_follow;

ALTER TABLE privacy_budgetaccount ENABLE ALWAYS TRIGGER privacy_account_forever;

-- A session's temporary tables come first in its search path; without a path of their own the rules would read one
-- named like the ledger in the ledger's place. And a plan made while the ledger was young must not read all of it later:
-- every question asked here has an index.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname LIKE 'privacy\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', routine);
        EXECUTE format('ALTER FUNCTION %s SET enable_bitmapscan = off', routine);
    END LOOP;
END $$;
