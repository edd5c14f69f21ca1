-- Takes every rule of this app back.
DROP FUNCTION dpal_site_visitor(text, bytea, bytea);
DROP FUNCTION dpal_site_session_ended(text);
DROP FUNCTION dpal_site_session_seen(text);
DROP FUNCTION dpal_site_session_of(text);
DROP FUNCTION dpal_site_session_digest(text);
