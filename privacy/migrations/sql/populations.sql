-- What several accounts share: whoever pays for a project of a population pays for the population, both or neither.

-- The population an account belongs to. Volatile, so that it sees one that was joined while the entry waited its turn.
CREATE FUNCTION privacy_population_of(asked bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT quota.population_id FROM privacy_quota quota WHERE quota.account_id = asked);
END $$;

CREATE FUNCTION privacy_is_shared(asked bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM privacy_quota WHERE account_id = asked)
        OR EXISTS (SELECT FROM privacy_population WHERE account_id = asked);
END $$;

-- The key of the reservation that repeats another one in a population's account; any language can compute it.
CREATE FUNCTION privacy_shared_key(origin uuid, shared_account bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT substr(encode(sha256(convert_to(origin::text || ':' || shared_account::text, 'UTF8')), 'hex'), 1, 32)::uuid
$$;

-- Refuse a population's entry that repeats none of a project's, or repeats one at a lower price.
CREATE FUNCTION privacy_check_repeats(shared privacy_ledgerentry, population bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event CONSTANT jsonb := shared.event_json;
    terms privacy_budgetaccount%ROWTYPE;
    quota privacy_quota%ROWTYPE;
    origin privacy_ledgerentry%ROWTYPE;
    people numeric;
    epsilon numeric;
    growth numeric;
BEGIN
    SELECT account.* INTO terms FROM privacy_budgetaccount account WHERE account.id = shared.account_id;
    SELECT member.* INTO quota FROM privacy_quota member JOIN privacy_budgetaccount account ON account.id = member.account_id
    WHERE account.scope = event ->> 'scope' AND member.population_id = population;
    SELECT entry.* INTO origin FROM privacy_ledgerentry entry
    WHERE entry.account_id = quota.account_id AND entry.sequence = (event ->> 'entry')::bigint;
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
CREATE FUNCTION privacy_check_repeated(entry privacy_ledgerentry, population bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    shared_account CONSTANT bigint := (SELECT each.account_id FROM privacy_population each WHERE each.id = population);
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
    SELECT each.id INTO population FROM privacy_population each WHERE each.account_id = NEW.account_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF NEW.kind = 'reserve' THEN
        PERFORM privacy_check_repeats(NEW, population);
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
CREATE FUNCTION privacy_check_quota() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    member privacy_budgetaccount%ROWTYPE;
    common privacy_budgetaccount%ROWTYPE;
BEGIN
    -- Reservations of the account that are under way end first, and those that come later find it joined.
    SELECT * INTO member FROM privacy_budgetaccount WHERE id = NEW.account_id FOR NO KEY UPDATE;
    SELECT account.* INTO common FROM privacy_population population
    JOIN privacy_budgetaccount account ON account.id = population.account_id WHERE population.id = NEW.population_id;
    IF EXISTS (SELECT FROM privacy_population WHERE account_id = NEW.account_id) THEN
        PERFORM privacy_refuse('privacy_quota_of_project', 'a population is no part of another');
    END IF;
    IF member.adjacency <> common.adjacency THEN
        PERFORM privacy_refuse('privacy_quota_neighbours', 'both accounts need the same neighbours');
    END IF;
    IF member.unit NOT IN ('record', 'contributor') OR common.unit NOT IN ('record', 'contributor')
        OR (member.unit = 'contributor' AND (common.unit <> 'contributor' OR NEW.records_per_person <> 1))
    THEN
        PERFORM privacy_refuse('privacy_quota_unit', 'the units have no conversion');
    END IF;
    IF member.filter = 'zcdp' AND common.filter = 'pure' THEN
        PERFORM privacy_refuse('privacy_quota_filter', 'a sum of epsilons admits no operation that has none');
    END IF;
    NEW.joined_at := date_trunc('second', clock_timestamp());
    RETURN NEW;
END $$;

CREATE TRIGGER privacy_quota_joins BEFORE INSERT ON privacy_quota
    FOR EACH ROW EXECUTE FUNCTION privacy_check_quota();

ALTER TABLE privacy_quota ENABLE ALWAYS TRIGGER privacy_quota_joins;

-- What was spent before counts: at the end of the transaction every reservation that stands is charged to the population.
CREATE FUNCTION privacy_check_past() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    shared_account CONSTANT bigint := (
        SELECT population.account_id FROM privacy_population population WHERE population.id = NEW.population_id
    );
BEGIN
    IF EXISTS (
        SELECT FROM privacy_ledgerentry entry
        WHERE entry.account_id = NEW.account_id AND entry.kind = 'reserve' AND NOT privacy_is_void(entry.id)
            AND NOT EXISTS (
                SELECT FROM privacy_ledgerentry twin
                WHERE twin.idempotency_key = privacy_shared_key(entry.idempotency_key, shared_account)
                    AND twin.account_id = shared_account
            )
    ) THEN
        PERFORM privacy_refuse('privacy_quota_past', 'what the account has spent is not charged to the population');
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER privacy_quota_past AFTER INSERT ON privacy_quota
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION privacy_check_past();

ALTER TABLE privacy_quota ENABLE ALWAYS TRIGGER privacy_quota_past;

-- The account a population gets is its own from the first entry on: the unit of people, and nothing paid from it before.
CREATE FUNCTION privacy_check_opening() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM privacy_budgetaccount WHERE id = NEW.account_id AND unit NOT IN ('record', 'contributor'))
        OR EXISTS (SELECT FROM privacy_ledgerentry WHERE account_id = NEW.account_id AND kind = 'reserve')
        OR EXISTS (SELECT FROM privacy_quota WHERE account_id = NEW.account_id)
    THEN
        PERFORM privacy_refuse('privacy_population_own_account', 'a population begins with an account of its own');
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER privacy_population_opens BEFORE INSERT ON privacy_population
    FOR EACH ROW EXECUTE FUNCTION privacy_check_opening();

ALTER TABLE privacy_population ENABLE ALWAYS TRIGGER privacy_population_opens;

-- Nobody leaves, and no declared number changes under what was paid by it.
CREATE TRIGGER privacy_population_forever BEFORE UPDATE OR DELETE OR TRUNCATE ON privacy_population
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();

CREATE TRIGGER privacy_quota_forever BEFORE UPDATE OR DELETE OR TRUNCATE ON privacy_quota
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();

ALTER TABLE privacy_population ENABLE ALWAYS TRIGGER privacy_population_forever;

ALTER TABLE privacy_quota ENABLE ALWAYS TRIGGER privacy_quota_forever;

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
