-- Takes every rule back: its functions, and with them the triggers that call them.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname LIKE 'prolific\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', routine);
    END LOOP;
END $$;
