-- A configuration is a document that is written once. What it may hold is what the declared choices say.
CREATE FUNCTION annotation_value_fits(value jsonb, schema jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    types CONSTANT jsonb := CASE jsonb_typeof(schema -> 'type')
        WHEN 'array' THEN schema -> 'type' ELSE jsonb_build_array(schema -> 'type') END;
    type CONSTANT text := jsonb_typeof(value);
    said CONSTANT text := value #>> '{}';
    number numeric;
BEGIN
    IF NOT (types ? type OR type = 'number' AND types ? 'integer' AND value::numeric % 1 = 0) THEN
        RETURN false;
    END IF;
    IF type = 'string' AND said !~ (schema ->> 'pattern') THEN
        RETURN false;
    END IF;
    -- An amount of money is a text, so that nobody rounds it.
    IF type = 'number' OR type = 'string' AND schema ->> 'format' = 'decimal' THEN
        number := said;
    END IF;
    IF number <= (schema ->> 'exclusiveMinimum')::numeric
        OR number < (schema ->> 'minimum')::numeric
        OR number >= (schema ->> 'exclusiveMaximum')::numeric
        OR number > (schema ->> 'maximum')::numeric
    THEN
        RETURN false;
    END IF;
    RETURN NOT schema ? 'enum' OR schema -> 'enum' @> jsonb_build_array(value);
END $$;

CREATE FUNCTION annotation_check_document() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    part record;
    setting record;
BEGIN
    IF NEW.version <> 1 + coalesce(
        (SELECT max(version) FROM annotation_configuration WHERE project_id = NEW.project_id), 0
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_configuration_follows',
            MESSAGE = 'versions of a configuration follow one another';
    END IF;
    IF jsonb_typeof(NEW.document) <> 'object' OR EXISTS (
        SELECT FROM jsonb_each(NEW.document) WHERE jsonb_typeof(value) <> 'object'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_configuration_declared',
            MESSAGE = 'a configuration consists of sections';
    END IF;
    FOR part IN SELECT key, value FROM jsonb_each(NEW.document) LOOP
        FOR setting IN SELECT key, value FROM jsonb_each(part.value) LOOP
            IF NOT EXISTS (
                SELECT FROM annotation_knownchoice known
                WHERE known.section = part.key AND (
                    known.key = setting.key AND to_jsonb(known.name) = setting.value
                    OR known.parameters ? setting.key
                        AND annotation_value_fits(setting.value, known.parameters -> setting.key)
                )
            ) THEN
                RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_configuration_declared',
                    MESSAGE = format('no choice declares this value of %s.%s', part.key, setting.key);
            END IF;
        END LOOP;
    END LOOP;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_configuration_declared BEFORE INSERT ON annotation_configuration
    FOR EACH ROW EXECUTE FUNCTION annotation_check_document();

CREATE TRIGGER annotation_configuration_kept BEFORE UPDATE OR DELETE ON annotation_configuration
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a configuration is never rewritten: a change is another version');

CREATE TRIGGER annotation_configuration_kept_whole BEFORE TRUNCATE ON annotation_configuration
    FOR EACH STATEMENT EXECUTE FUNCTION annotation_refuse('a configuration is never rewritten: a change is another version');

CREATE FUNCTION annotation_settings(configuration uuid) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_object_agg(setting.key, setting.value), '{}')
    FROM annotation_configuration stored, jsonb_each(stored.document) part, jsonb_each(part.value) setting
    WHERE stored.id = configuration
$$;

CREATE FUNCTION annotation_settings_differ(before uuid, after uuid, VARIADIC names text[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT before <> after AND EXISTS (
        SELECT FROM annotation_settings(before) was, annotation_settings(after) becomes, unnest(names) name
        WHERE was -> name IS DISTINCT FROM becomes -> name
    )
$$;

-- What a project chose must be sound in front of its oracle, for the way its records come and for what they are.
CREATE FUNCTION annotation_check_choices() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    settings CONSTANT jsonb := to_jsonb(NEW) || annotation_settings(NEW.configuration_id);
    kinds record;
    known annotation_knownchoice;
    broken text;
    rule text;
BEGIN
    IF NOT EXISTS (
        SELECT FROM annotation_configuration WHERE id = NEW.configuration_id AND project_id = NEW.id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_project_configuration_own',
            MESSAGE = 'a project has a configuration of its own';
    END IF;
    IF NOT EXISTS (SELECT FROM annotation_knownchoice) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_project_choices_known',
            MESSAGE = 'the database knows no choice: run migrate';
    END IF;
    FOR kinds IN SELECT DISTINCT kind, key FROM annotation_knownchoice WHERE key <> '' LOOP
        CONTINUE WHEN coalesce(settings ->> kinds.key, '') = '';
        SELECT * INTO known FROM annotation_knownchoice WHERE kind = kinds.kind AND name = settings ->> kinds.key;
        broken := CASE
            WHEN known IS NULL THEN 'fits_oracle'
            WHEN NEW.arrival <> ALL (known.arrivals) AND (NEW.arrival = 'stream' OR kinds.kind = 'policy') THEN 'stream'
            WHEN NEW.oracle <> ALL (known.oracles) OR NEW.arrival <> ALL (known.arrivals) THEN 'fits_oracle'
            WHEN NEW.data_kind <> ALL (known.data_kinds) THEN 'fits_data'
            WHEN kinds.key = 'estimator' AND (known.parameters ? 'training_delta') <> (settings ? 'training_delta')
                THEN 'training_delta'
            WHEN EXISTS (
                SELECT FROM jsonb_each(known.parameters) declared
                WHERE NOT to_jsonb(NEW) ? declared.key AND CASE WHEN settings ? declared.key
                    THEN settings -> declared.key <> 'null'
                        AND NOT annotation_value_fits(settings -> declared.key, declared.value)
                    ELSE kinds.key = 'estimator' AND NOT declared.value -> 'type' ? 'null' END
            ) THEN 'fits_range'
        END;
        IF broken IS NOT NULL THEN
            rule := CASE WHEN broken IN ('stream', 'training_delta') THEN broken
                WHEN kinds.key = 'features' AND broken <> 'fits_range' THEN 'features_fit_data'
                ELSE kinds.key || '_' || broken END;
            RAISE EXCEPTION USING ERRCODE = 'check_violation',
                CONSTRAINT = 'annotation_project_' || rule,
                MESSAGE = format('%s has no proof as %s of this project: annotation_project_%s',
                    settings ->> kinds.key, kinds.kind, rule);
        END IF;
    END LOOP;
    RETURN NEW;
END $$;

-- Triggers fire in the order of their names: those that say why something stays come first.
CREATE TRIGGER annotation_project_within_proof
    BEFORE INSERT OR UPDATE OF oracle, arrival, data_kind, configuration_id
    ON annotation_project FOR EACH ROW EXECUTE FUNCTION annotation_check_choices();

-- Of what was paid for, the parameters of a choice that stays never change; of a stream, none of any choice.
CREATE FUNCTION annotation_check_successor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before CONSTANT jsonb := annotation_settings(OLD.configuration_id);
    after CONSTANT jsonb := annotation_settings(NEW.configuration_id);
    chosen CONSTANT jsonb := to_jsonb(OLD) || before;
BEGIN
    IF EXISTS (
        SELECT FROM annotation_knownchoice known, jsonb_each(known.parameters || jsonb_build_object(known.key, '')) declared
        WHERE (known.stays OR OLD.arrival = 'stream' AND known.section IN ('selection', 'features', 'training'))
            AND (known.key = '' OR chosen ->> known.key = known.name)
            AND before -> declared.key IS DISTINCT FROM after -> declared.key
            AND NOT to_jsonb(OLD) ? declared.key
    ) AND EXISTS (
        SELECT FROM privacy_ledgerentry
        WHERE account_id IN (OLD.pool_account_id, OLD.labels_account_id) AND kind = 'reserve'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'what was paid for goes on under the configuration that it was paid for under';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_successor BEFORE UPDATE OF configuration_id ON annotation_project
    FOR EACH ROW WHEN (OLD.configuration_id IS DISTINCT FROM NEW.configuration_id)
    EXECUTE FUNCTION annotation_check_successor();
