-- A stream pays once, for its whole life, so what it paid for must stay what it does.
CREATE FUNCTION annotation_check_stream_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM privacy_ledgerentry WHERE account_id = OLD.pool_account_id AND kind = 'reserve') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'how a stream selects and learns never changes once its account has paid for it';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_stream_fixed
    BEFORE UPDATE OF selection, screen_high, screen_low, screen_reach, exponential_threshold,
        selection_epsilon, question_kind, update_policy,
        window_length, window_denominator, window_hours, estimator, noise_sigma, expected_answers, step_size,
        weight_radius, average_iterates, training_epsilon, training_delta, feature_dimension, classes, columns ON annotation_project
    FOR EACH ROW WHEN (
        OLD.arrival = 'stream'
        AND (OLD.selection, OLD.screen_high, OLD.screen_low, OLD.screen_reach, OLD.exponential_threshold,
             OLD.selection_epsilon, OLD.question_kind, OLD.update_policy, OLD.window_length, OLD.window_denominator, OLD.window_hours,
             OLD.estimator, OLD.noise_sigma, OLD.expected_answers, OLD.step_size, OLD.weight_radius,
             OLD.average_iterates, OLD.training_epsilon, OLD.training_delta, OLD.feature_dimension, OLD.classes, OLD.columns)
        IS DISTINCT FROM
            (NEW.selection, NEW.screen_high, NEW.screen_low, NEW.screen_reach, NEW.exponential_threshold,
             NEW.selection_epsilon, NEW.question_kind, NEW.update_policy, NEW.window_length, NEW.window_denominator, NEW.window_hours,
             NEW.estimator, NEW.noise_sigma, NEW.expected_answers, NEW.step_size, NEW.weight_radius,
             NEW.average_iterates, NEW.training_epsilon, NEW.training_delta, NEW.feature_dimension, NEW.classes, NEW.columns)
    )
    EXECUTE FUNCTION annotation_check_stream_change();
CREATE TRIGGER annotation_project_arrival_fixed BEFORE UPDATE OF arrival ON annotation_project
    FOR EACH ROW WHEN (OLD.arrival IS DISTINCT FROM NEW.arrival)
    EXECUTE FUNCTION annotation_refuse('how records reach a project never changes');

DROP TRIGGER annotation_query_source_fixed ON annotation_query;
CREATE TRIGGER annotation_query_source_fixed
    BEFORE UPDATE OF project_id, record_id, gate_run_id, text, sample_count, noisy_count, guess ON annotation_query
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.record_id, OLD.gate_run_id, OLD.text, OLD.sample_count, OLD.noisy_count, OLD.guess)
        IS DISTINCT FROM
        (NEW.project_id, NEW.record_id, NEW.gate_run_id, NEW.text, NEW.sample_count, NEW.noisy_count, NEW.guess)
    )
    EXECUTE FUNCTION annotation_refuse('what a question shows never changes');

-- As for every function of ours: a temporary table named like one of these tables is not read in its place.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION annotation_check_stream_change() SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
END $$;
