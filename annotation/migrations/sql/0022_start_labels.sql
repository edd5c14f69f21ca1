-- A label stored beside a pool's record would be an answer nobody paid for; a charged start pays for its own.
CREATE OR REPLACE FUNCTION annotation_check_record_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM annotation_dataset
        WHERE id = NEW.dataset_id AND role IN ('public_test', 'public_start', 'charged_start')
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'no record of a pool carries a label';
    END IF;
    RETURN NEW;
END $$;

-- Replacing a function drops its settings. A session's temporary tables come first in its search path otherwise.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION annotation_check_record_label() SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
END $$;
