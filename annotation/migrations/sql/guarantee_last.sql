CREATE TRIGGER annotation_project_under_guarantee
    BEFORE UPDATE OF privacy_unit, pool_account_id, labels_account_id, data_kind, columns, image_height, image_width
    ON annotation_project
    FOR EACH ROW WHEN (
        (OLD.privacy_unit, OLD.pool_account_id, OLD.labels_account_id, OLD.data_kind, OLD.columns,
         OLD.image_height, OLD.image_width)
        IS DISTINCT FROM
        (NEW.privacy_unit, NEW.pool_account_id, NEW.labels_account_id, NEW.data_kind, NEW.columns,
         NEW.image_height, NEW.image_width)
    )
    EXECUTE FUNCTION annotation_check_guarantee_change();

-- A project pays from the accounts that it has. Settings that change before the first charge may give up an account, and
-- whoever read the project a moment before must not spend the limit of that one beside the limit of the new one. Such a
-- change is waited for, and by its name this trigger comes before the one that locks the account.
CREATE FUNCTION annotation_check_account_in_use() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    owner CONSTANT text := (
        SELECT substring(scope FROM '^project:([^:]+):(?:pool|labels)') FROM privacy_budgetaccount
        WHERE id = NEW.account_id
    );
    pool bigint;
    labels bigint;
BEGIN
    SELECT pool_account_id, labels_account_id INTO pool, labels FROM annotation_project WHERE slug = owner FOR KEY SHARE;
    IF FOUND AND NEW.account_id IS DISTINCT FROM pool AND NEW.account_id IS DISTINCT FROM labels THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'privacy_account_given_up',
            MESSAGE = 'the project has another account by now';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_account_in_use BEFORE INSERT ON privacy_ledgerentry
    FOR EACH ROW WHEN (NEW.kind = 'reserve') EXECUTE FUNCTION annotation_check_account_in_use();
