DROP FUNCTION dpal_site_visitor(text, bytea, bytea);
DROP FUNCTION dpal_site_session_ended(text);
DROP FUNCTION dpal_site_session_seen(text);
DROP FUNCTION dpal_site_session_of(text);
DROP FUNCTION dpal_site_session_digest(text);
CREATE TABLE django_session (
    session_key varchar(40) PRIMARY KEY, session_data text NOT NULL, expire_date timestamptz NOT NULL
);
CREATE INDEX django_session_expire_date_a5c62663 ON django_session (expire_date);
