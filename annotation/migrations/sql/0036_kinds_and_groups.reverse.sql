DROP TRIGGER annotation_project_kind_groups ON annotation_project;
DROP FUNCTION annotation_check_kind_groups();
