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

-- The state machine of a series: opened once, continued from what stands, counting all before it, and never twice.
CREATE FUNCTION privacy_check_step(event jsonb, parent privacy_ledgerentry) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT privacy_event_continues(event) THEN
        IF parent.id IS NOT NULL THEN
            PERFORM privacy_refuse('privacy_entry_series', 'what continues nothing names no entry before it');
        END IF;
        RETURN;
    END IF;
    IF parent.kind IS DISTINCT FROM 'reserve' OR privacy_is_void(parent.id) THEN
        PERFORM privacy_refuse('privacy_entry_series', 'a series continues from a standing reservation');
    END IF;
    IF NOT privacy_event_follows(event, parent.event_json::jsonb) THEN
        PERFORM privacy_refuse('privacy_entry_series_counted', 'a continuation counts all that its series released');
    END IF;
    IF EXISTS (
        SELECT FROM privacy_ledgerentry AS child
        WHERE child.parent_id = parent.id AND child.kind = 'reserve' AND NOT privacy_is_void(child.id)
    ) THEN
        PERFORM privacy_refuse('privacy_entry_series_continued_once', 'another release has paid for this step');
    END IF;
END $$;

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
        PERFORM privacy_check_event(NEW, account);
        PERFORM privacy_check_step(event, parent);
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
    IF (NEW.id, NEW.scope, NEW.unit, NEW.adjacency, NEW.filter, NEW.created_at, NEW.key_fingerprint)
        IS DISTINCT FROM (OLD.id, OLD.scope, OLD.unit, OLD.adjacency, OLD.filter, OLD.created_at, OLD.key_fingerprint)
    THEN
        PERFORM privacy_refuse('privacy_account_terms_fixed', 'scope, unit, adjacency and filter are fixed at creation');
    END IF;
    -- Nobody leaves, and no declared number changes under what was paid by it.
    IF OLD.parent_id IS NOT NULL
        AND (NEW.parent_id, NEW.records_per_person) IS DISTINCT FROM (OLD.parent_id, OLD.records_per_person)
    THEN
        PERFORM privacy_refuse('privacy_account_terms_fixed', 'an account keeps the parent that it joined');
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

-- What several accounts share: whoever pays for a project of a population pays for the population, both or neither.

-- The population an account belongs to. Volatile, so that it sees one that was joined while the entry waited its turn.
CREATE FUNCTION privacy_population_of(asked bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT account.parent_id FROM privacy_budgetaccount account WHERE account.id = asked);
END $$;

CREATE FUNCTION privacy_is_shared(asked bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM privacy_budgetaccount account
        WHERE account.id = asked AND (account.parent_id IS NOT NULL OR account.key_fingerprint <> '')
    );
END $$;

-- The key of the reservation that repeats another one in a population's account; any language can compute it.
CREATE FUNCTION privacy_shared_key(origin uuid, shared_account bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(encode(sha256(convert_to(origin::text || ':' || shared_account::text, 'UTF8')), 'hex'), 1, 32)::uuid
$$;

-- Refuse a population's entry that repeats none of a project's, or repeats one at a lower price.
CREATE FUNCTION privacy_check_repeats(shared privacy_ledgerentry) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event CONSTANT jsonb := shared.event_json;
    terms privacy_budgetaccount%ROWTYPE;
    quota privacy_budgetaccount%ROWTYPE;
    origin privacy_ledgerentry%ROWTYPE;
    people numeric;
    epsilon numeric;
    growth numeric;
BEGIN
    SELECT account.* INTO terms FROM privacy_budgetaccount account WHERE account.id = shared.account_id;
    SELECT account.* INTO quota FROM privacy_budgetaccount account
    WHERE account.scope = event ->> 'scope' AND account.parent_id = shared.account_id;
    SELECT entry.* INTO origin FROM privacy_ledgerentry entry
    WHERE entry.account_id = quota.id AND entry.sequence = (event ->> 'entry')::bigint;
    IF origin.kind IS DISTINCT FROM 'reserve' OR origin.event_json::jsonb IS DISTINCT FROM event -> 'event'
        OR shared.idempotency_key IS DISTINCT FROM privacy_shared_key(origin.idempotency_key, shared.account_id)
        OR (event ->> 'kind', event ->> 'unit', (event ->> 'records_per_person')::bigint)
            IS DISTINCT FROM ('people', terms.unit::text, quota.records_per_person::bigint)
    THEN
        PERFORM privacy_refuse('privacy_population_repeats', 'a population pays for what one of its projects paid for');
    END IF;
    -- Stored amounts are rounded up to whole units, each less than one unit too high.
    people := quota.records_per_person;
    epsilon := greatest(0, coalesce(origin.epsilon_nano, 0) - 1) / 1e9::numeric(40, 20);
    growth := CASE
        WHEN origin.delta_atto = 0 OR people = 1 OR epsilon = 0 THEN people
        -- Beyond this the delta is one, whatever it began as.
        WHEN people * epsilon > 50 THEN 1e20
        ELSE (exp(people * epsilon) - 1) / (exp(epsilon) - 1)
    END;
    IF shared.epsilon_nano < people * (origin.epsilon_nano - 1)
        OR (shared.epsilon_nano IS NOT NULL AND origin.epsilon_nano IS NULL)
        OR shared.delta_atto < least(1e18, growth * greatest(0, origin.delta_atto - 1)) - 1
        OR (origin.delta_atto = 0 AND shared.rho_nano < people * people * (origin.rho_nano - 1))
        OR (origin.delta_atto <> 0 AND people > 1 AND shared.rho_nano < power(people * epsilon, 2) / 2 * 1e9 - 1)
        OR (shared.rho_nano IS NOT NULL AND origin.rho_nano IS NULL)
        OR (people = 1 AND (shared.epsilon_nano, shared.delta_atto, shared.rho_nano)
            IS DISTINCT FROM (origin.epsilon_nano, origin.delta_atto, origin.rho_nano))
    THEN
        PERFORM privacy_refuse('privacy_population_price', 'a person loses more than is charged for it');
    END IF;
END $$;

-- Refuse a project's reservation, or its settlement, that the population's account does not repeat.
CREATE FUNCTION privacy_check_repeated(entry privacy_ledgerentry, shared_account bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    reserved_under uuid := entry.idempotency_key;
    shared bigint;
BEGIN
    IF entry.kind <> 'reserve' THEN
        SELECT parent.idempotency_key INTO reserved_under FROM privacy_ledgerentry parent WHERE parent.id = entry.parent_id;
    END IF;
    SELECT twin.id INTO shared FROM privacy_ledgerentry twin
    WHERE twin.idempotency_key = privacy_shared_key(reserved_under, shared_account)
        AND twin.account_id = shared_account AND twin.kind = 'reserve';
    -- What was given back before the account joined was never charged to the population.
    IF NOT FOUND AND privacy_is_void(CASE entry.kind WHEN 'reserve' THEN entry.id ELSE entry.parent_id END) THEN
        RETURN;
    END IF;
    IF shared IS NULL OR (
        entry.kind <> 'reserve' AND NOT EXISTS (
            SELECT FROM privacy_ledgerentry settlement
            WHERE settlement.parent_id = shared AND settlement.kind = entry.kind
                AND settlement.output_digest = entry.output_digest
        )
    ) THEN
        PERFORM privacy_refuse('privacy_entry_in_population', 'its population has to be charged for it, too');
    END IF;
END $$;

-- Held at the end of each transaction, when both entries stand or neither does.
CREATE FUNCTION privacy_check_population() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    population bigint := privacy_population_of(NEW.account_id);
    parent privacy_ledgerentry%ROWTYPE;
BEGIN
    IF population IS NOT NULL THEN
        PERFORM privacy_check_repeated(NEW, population);
        RETURN NULL;
    END IF;
    IF NEW.kind = 'reserve' THEN
        PERFORM privacy_check_repeats(NEW);
        RETURN NULL;
    END IF;
    SELECT * INTO parent FROM privacy_ledgerentry WHERE id = NEW.parent_id;
    IF NOT EXISTS (
        SELECT FROM privacy_ledgerentry origin
        JOIN privacy_budgetaccount account ON account.id = origin.account_id
        JOIN privacy_ledgerentry settlement ON settlement.parent_id = origin.id AND settlement.kind = NEW.kind
        WHERE account.scope = parent.event_json::jsonb ->> 'scope'
            AND origin.sequence = (parent.event_json::jsonb ->> 'entry')::bigint
    ) THEN
        PERFORM privacy_refuse('privacy_population_repeats', 'a population settles what its project has settled');
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER privacy_entry_in_population AFTER INSERT ON privacy_ledgerentry
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.kind IN ('reserve', 'commit', 'charge', 'void') AND privacy_is_shared(NEW.account_id))
    EXECUTE FUNCTION privacy_check_population();

ALTER TABLE privacy_ledgerentry ENABLE ALWAYS TRIGGER privacy_entry_in_population;

-- Which account may share which limit: nothing without a conversion, and neither a population nor what it has spent.
-- Reservations that are under way have the account's row: they end first, and those that come later find it joined.
CREATE FUNCTION privacy_check_quota() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    common privacy_budgetaccount%ROWTYPE;
BEGIN
    SELECT account.* INTO common FROM privacy_budgetaccount account WHERE account.id = NEW.parent_id;
    IF NEW.key_fingerprint <> '' OR common.key_fingerprint = '' THEN
        PERFORM privacy_refuse('privacy_quota_of_project', 'projects join a population, and nothing else does');
    END IF;
    IF NEW.adjacency <> common.adjacency THEN
        PERFORM privacy_refuse('privacy_quota_neighbours', 'both accounts need the same neighbours');
    END IF;
    IF NEW.unit NOT IN ('record', 'contributor')
        OR (NEW.unit = 'contributor' AND (common.unit <> 'contributor' OR NEW.records_per_person <> 1))
    THEN
        PERFORM privacy_refuse('privacy_quota_unit', 'the units have no conversion');
    END IF;
    IF NEW.filter = 'zcdp' AND common.filter = 'pure' THEN
        PERFORM privacy_refuse('privacy_quota_filter', 'a sum of epsilons admits no operation that has none');
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER privacy_quota_joins BEFORE INSERT OR UPDATE OF parent_id ON privacy_budgetaccount
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION privacy_check_quota();

ALTER TABLE privacy_budgetaccount ENABLE ALWAYS TRIGGER privacy_quota_joins;

-- What was spent before counts: at the end of the transaction every reservation that stands is charged to the population.
CREATE FUNCTION privacy_check_past() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM privacy_ledgerentry entry
        WHERE entry.account_id = NEW.id AND entry.kind = 'reserve' AND NOT privacy_is_void(entry.id)
            AND NOT EXISTS (
                SELECT FROM privacy_ledgerentry twin
                WHERE twin.idempotency_key = privacy_shared_key(entry.idempotency_key, NEW.parent_id)
                    AND twin.account_id = NEW.parent_id
            )
    ) THEN
        PERFORM privacy_refuse('privacy_quota_past', 'what the account has spent is not charged to the population');
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER privacy_quota_past AFTER INSERT OR UPDATE OF parent_id ON privacy_budgetaccount
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION privacy_check_past();

ALTER TABLE privacy_budgetaccount ENABLE ALWAYS TRIGGER privacy_quota_past;

-- The two totals of an account that say whether anything is left, for a process that cannot read the entries.
CREATE FUNCTION privacy_account_totals(asked bigint) RETURNS TABLE (epsilon_nano bigint, rho_nano bigint)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
BEGIN
    RETURN QUERY
        SELECT entry.epsilon_spent_nano, entry.rho_spent_nano FROM privacy_ledgerentry entry
        WHERE entry.account_id = asked ORDER BY entry.sequence DESC LIMIT 1;
END $$;

REVOKE EXECUTE ON FUNCTION privacy_account_totals(bigint) FROM PUBLIC;

-- Which counter the ledger belongs to is history, too: a new row says when and why another one was begun.
CREATE TRIGGER privacy_counter_forever BEFORE UPDATE OR DELETE OR TRUNCATE ON privacy_ledgercounter
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();

ALTER TABLE privacy_ledgercounter ENABLE ALWAYS TRIGGER privacy_counter_forever;

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
