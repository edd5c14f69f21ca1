-- A stream pays once, for its whole life, so what it paid for must stay what it does; the same of its classes and document
-- hold `annotation_project_classes_stay` and `annotation_project_successor`.
CREATE FUNCTION annotation_check_stream_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM privacy_ledgerentry WHERE account_id = OLD.pool_account_id AND kind = 'reserve') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'how a stream selects and learns never changes once its account has paid for it';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_stream_fixed
    BEFORE UPDATE OF columns ON annotation_project
    FOR EACH ROW WHEN (OLD.arrival = 'stream' AND OLD.columns IS DISTINCT FROM NEW.columns)
    EXECUTE FUNCTION annotation_check_stream_change();
