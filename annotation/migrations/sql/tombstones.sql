-- A project ends as a tombstone: its row stays, for the ledger's entries refer to it, and nothing about it changes.
CREATE TRIGGER annotation_project_stays BEFORE DELETE ON annotation_project
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a project is deleted by its tombstone, and its row stays');

CREATE TRIGGER annotation_project_stays_deleted BEFORE UPDATE ON annotation_project
    FOR EACH ROW WHEN (OLD.state = 'deleted' AND OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('a deleted project never changes');

CREATE TRIGGER annotation_deletion_kept BEFORE UPDATE OR DELETE ON annotation_deletion
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a deletion is not taken back');

-- Nothing new comes into a project that was put away or deleted.
CREATE FUNCTION annotation_check_project_open() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND state IN ('archived', 'deleted')) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'an archived or deleted project can only be read';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_dataset_project_open BEFORE INSERT ON annotation_dataset
    FOR EACH ROW EXECUTE FUNCTION annotation_check_project_open();

-- Labels go with their project only.
CREATE FUNCTION annotation_check_label_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotation_query query JOIN annotation_project project ON project.id = query.project_id
        WHERE query.id = OLD.query_id AND project.state = 'deleted'
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'labels are superseded, never deleted';
END $$;

CREATE TRIGGER annotation_label_kept BEFORE DELETE ON annotation_label
    FOR EACH ROW EXECUTE FUNCTION annotation_check_label_gone();
