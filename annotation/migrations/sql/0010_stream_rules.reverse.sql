DROP TRIGGER annotation_query_source_fixed ON annotation_query;
CREATE TRIGGER annotation_query_source_fixed
    BEFORE UPDATE OF project_id, record_id, gate_run_id, text, sample_count, noisy_count ON annotation_query
    FOR EACH ROW WHEN (
        (OLD.project_id, OLD.record_id, OLD.gate_run_id, OLD.text, OLD.sample_count, OLD.noisy_count)
        IS DISTINCT FROM (NEW.project_id, NEW.record_id, NEW.gate_run_id, NEW.text, NEW.sample_count, NEW.noisy_count)
    )
    EXECUTE FUNCTION annotation_refuse('what a question shows never changes');
DROP TRIGGER annotation_project_arrival_fixed ON annotation_project;
DROP TRIGGER annotation_project_stream_fixed ON annotation_project;
DROP FUNCTION annotation_check_stream_change();
