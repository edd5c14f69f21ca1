CREATE TRIGGER annotation_project_under_guarantee
    BEFORE UPDATE OF privacy_unit, pool_account_id, labels_account_id, data_kind, columns, image_height, image_width
    ON annotation_project
    FOR EACH ROW WHEN (
        (OLD.privacy_unit, OLD.pool_account_id, OLD.labels_account_id, OLD.data_kind, OLD.columns,
         OLD.image_height, OLD.image_width)
        IS DISTINCT FROM
        (NEW.privacy_unit, NEW.pool_account_id, NEW.labels_account_id, NEW.data_kind, NEW.columns,
         NEW.image_height, NEW.image_width)
    )
    EXECUTE FUNCTION annotation_check_guarantee_change();
