-- Answers are numbers of span sets, so what a number means never changes.
CREATE TRIGGER annotation_spanset_fixed BEFORE UPDATE ON annotation_spanset
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a stored set of spans never changes');
