DROP FUNCTION privacy_account_totals(bigint);
