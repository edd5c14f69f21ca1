CREATE OR REPLACE FUNCTION annotation_check_record_label() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotation_dataset WHERE id = NEW.dataset_id AND role = 'public_test') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'only records of a public test set carry a label';
    END IF;
    RETURN NEW;
END $$;

DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION annotation_check_record_label() SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
END $$;
