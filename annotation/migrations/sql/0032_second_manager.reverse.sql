DROP TRIGGER annotation_limitrequest_stays ON annotation_limitrequest;
DROP TRIGGER annotation_project_keeps_second ON annotation_project;
DROP FUNCTION annotation_check_alone();
DROP TRIGGER annotation_limit_needs_second ON privacy_ledgerentry;
DROP FUNCTION annotation_check_limit_change();
