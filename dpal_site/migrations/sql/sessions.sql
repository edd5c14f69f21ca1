-- A session stands under the digest of what its browser holds: whoever reads the table can be nobody by it.
CREATE FUNCTION dpal_site_session_digest(secret text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT left(encode(sha256(convert_to(secret, 'UTF8')), 'hex'), 40)
$$;

-- What the process of the label pages may do with a session: each asks for the secret itself, which only its browser has.
CREATE FUNCTION dpal_site_session_of(secret text) RETURNS TABLE (session_data text, seen_at timestamptz)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT session.session_data, session.seen_at FROM dpal_site_session session
        WHERE session.session_key = dpal_site_session_digest($1) AND session.expire_date > now();
END $$;

CREATE FUNCTION dpal_site_session_seen(secret text) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    UPDATE dpal_site_session SET seen_at = now() WHERE session_key = dpal_site_session_digest($1);
END $$;

CREATE FUNCTION dpal_site_session_ended(secret text) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER AS $$
BEGIN
    DELETE FROM dpal_site_session WHERE session_key = dpal_site_session_digest($1);
END $$;

-- Whose session it is. Instead of the password's hash, which opens links to set a new one, its HMAC-SHA-256 under the
-- key that sessions are checked with, given as the two blocks that HMAC makes of it.
CREATE FUNCTION dpal_site_visitor(secret text, inner_block bytea, outer_block bytea)
RETURNS TABLE (id integer, is_superuser boolean, username varchar, is_staff boolean, is_active boolean, verified bytea)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT person.id, person.is_superuser, person.username, person.is_staff, person.is_active,
            sha256($3 || sha256($2 || convert_to(person.password, 'UTF8')))
        FROM dpal_site_session session JOIN auth_user person ON person.id = session.person_id
        WHERE session.session_key = dpal_site_session_digest($1) AND session.expire_date > now();
END $$;

-- As for every function of ours: a temporary table named like one of these tables is not read in its place.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'dpal_site_session_digest(text)', 'dpal_site_session_of(text)', 'dpal_site_session_seen(text)',
        'dpal_site_session_ended(text)', 'dpal_site_visitor(text, bytea, bytea)'
    ] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', name);
    END LOOP;
END $$;
