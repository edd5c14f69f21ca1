CREATE TRIGGER annotation_guidelines_fixed BEFORE UPDATE ON annotation_guidelines
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('a version of the guidelines never changes');
