-- What the last charge was made for must stay what the project says: the words shown to annotators are read from it.
CREATE FUNCTION annotation_check_gate_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM privacy_ledgerentry WHERE account_id = OLD.pool_account_id AND kind = 'reserve') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the gate of a project never changes once its pool account has paid for something';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_gate_fixed
    BEFORE UPDATE OF gate_kind, gate_k, gate_sampling_rate, gate_epsilon, gate_delta, gate_floor,
        texts_per_contributor, normalizer, privacy_unit ON annotation_project
    FOR EACH ROW WHEN (
        (OLD.gate_kind, OLD.gate_k, OLD.gate_sampling_rate, OLD.gate_epsilon, OLD.gate_delta, OLD.gate_floor,
         OLD.texts_per_contributor, OLD.normalizer, OLD.privacy_unit)
        IS DISTINCT FROM
        (NEW.gate_kind, NEW.gate_k, NEW.gate_sampling_rate, NEW.gate_epsilon, NEW.gate_delta, NEW.gate_floor,
         NEW.texts_per_contributor, NEW.normalizer, NEW.privacy_unit)
    )
    EXECUTE FUNCTION annotation_check_gate_change();

DROP TRIGGER annotation_query_source_fixed ON annotation_query;
CREATE TRIGGER annotation_query_source_fixed
    BEFORE UPDATE OF project_id, record_id, gate_run_id, text, sample_count, noisy_count ON annotation_query
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.record_id, OLD.gate_run_id, OLD.text, OLD.sample_count, OLD.noisy_count)
        IS DISTINCT FROM (NEW.project_id, NEW.record_id, NEW.gate_run_id, NEW.text, NEW.sample_count, NEW.noisy_count)
    )
    EXECUTE FUNCTION annotation_refuse('what a question shows never changes');

-- As for every function of ours: a temporary table named like one of these tables is not read in its place.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION annotation_check_gate_change() SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
END $$;
