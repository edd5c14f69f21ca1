-- What stood beside a question when it was answered is measured by, so it never changes; it goes only with all the rest.
CREATE TRIGGER annotation_query_suggestion_fixed
    BEFORE UPDATE OF suggested, suggested_percent, suggestion_shown ON annotation_query
    FOR EACH ROW WHEN (
        OLD.suggested IS NOT NULL AND NOT NEW.emptied
        AND (OLD.suggested, OLD.suggested_percent, OLD.suggestion_shown)
        IS DISTINCT FROM
        (NEW.suggested, NEW.suggested_percent, NEW.suggestion_shown)
    )
    EXECUTE FUNCTION annotation_refuse('what was suggested with a question never changes');
