DROP TRIGGER annotation_dataset_emptied ON annotation_dataset;
DROP TRIGGER annotation_dataset_without_records ON annotation_dataset;
DROP TRIGGER annotation_record_keeps_dataset ON annotation_record;
DROP TRIGGER annotation_record_has_dataset ON annotation_record;
DROP FUNCTION annotation_check_left_records();
DROP FUNCTION annotation_check_moved_record();
DROP FUNCTION annotation_check_added_records();
