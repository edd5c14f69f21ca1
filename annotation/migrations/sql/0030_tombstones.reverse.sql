DROP TRIGGER annotation_label_kept ON annotation_label;
DROP FUNCTION annotation_check_label_gone();
CREATE TRIGGER annotation_label_kept BEFORE DELETE ON annotation_label
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('labels are superseded, never deleted');
DROP TRIGGER annotation_dataset_project_open ON annotation_dataset;
DROP FUNCTION annotation_check_project_open();
DROP TRIGGER annotation_deletion_kept ON annotation_deletion;
DROP TRIGGER annotation_project_stays_deleted ON annotation_project;
DROP TRIGGER annotation_project_stays ON annotation_project;
