-- The two totals of an account that say whether anything is left, for a process that cannot read the entries.
CREATE FUNCTION privacy_account_totals(asked bigint) RETURNS TABLE (epsilon_nano bigint, rho_nano bigint)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
BEGIN
    RETURN QUERY
        SELECT entry.epsilon_spent_nano, entry.rho_spent_nano FROM privacy_ledgerentry entry
        WHERE entry.account_id = asked ORDER BY entry.sequence DESC LIMIT 1;
END $$;

DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION privacy_account_totals(bigint) SET search_path = pg_catalog, %I, pg_temp', current_schema()
    );
    REVOKE EXECUTE ON FUNCTION privacy_account_totals(bigint) FROM PUBLIC;
END $$;
