DROP TRIGGER annotation_action_kept ON annotation_action;
DROP FUNCTION annotation_check_action_gone();
CREATE TRIGGER annotation_action_kept BEFORE UPDATE OR DELETE ON annotation_action
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('the log of actions is never rewritten');
