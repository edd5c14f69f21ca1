-- Which counter the ledger belongs to is history, too: a new row says when and why another one was begun.
CREATE TRIGGER privacy_counter_forever BEFORE UPDATE OR DELETE OR TRUNCATE ON privacy_ledgercounter
    FOR EACH STATEMENT EXECUTE FUNCTION privacy_keep_forever();
ALTER TABLE privacy_ledgercounter ENABLE ALWAYS TRIGGER privacy_counter_forever;
