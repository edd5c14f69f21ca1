DROP TRIGGER annotation_dataset_fits_arrival ON annotation_dataset;
DROP FUNCTION annotation_check_pool_dataset();
DROP TRIGGER annotation_project_kind_fixed ON annotation_project;
DROP FUNCTION annotation_check_kind_change();
CREATE TRIGGER annotation_project_arrival_fixed BEFORE UPDATE OF arrival ON annotation_project
    FOR EACH ROW WHEN (OLD.arrival IS DISTINCT FROM NEW.arrival)
    EXECUTE FUNCTION annotation_refuse('how records reach a project never changes');
CREATE TRIGGER annotation_project_oracle_fixed BEFORE UPDATE OF oracle ON annotation_project
    FOR EACH ROW WHEN (OLD.oracle IS DISTINCT FROM NEW.oracle)
    EXECUTE FUNCTION annotation_refuse('the oracle of a project never changes');
