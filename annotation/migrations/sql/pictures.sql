-- A picture is seen by those who see its record, and lasts no longer than what is in the record.

-- It is compressed already, and lies beside the row, which is read without it.
ALTER TABLE annotation_picture ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE annotation_picture
    ADD CONSTRAINT annotation_picture_bytes CHECK (octet_length(content) BETWEEN 1 AND 1048576);

-- What a gate counted are the grey values: two records with the same ones may have different colours.
CREATE FUNCTION annotation_check_picture() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    holder bigint;
    is_empty boolean;
    faced text;
BEGIN
    -- Whoever empties the record waits for us, and then finds the picture.
    SELECT dataset_id, emptied INTO holder, is_empty FROM annotation_record WHERE id = NEW.record_id FOR SHARE;
    IF is_empty THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_picture_of_nothing',
            MESSAGE = 'an emptied record has no picture';
    END IF;
    -- Whoever puts the project before a crowd waits for us, too.
    SELECT oracle INTO faced FROM annotation_project
    WHERE id = (SELECT project_id FROM annotation_dataset WHERE id = holder) FOR KEY SHARE;
    IF faced = 'crowd' THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'behind a gate no record keeps a picture';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_picture_in_sight BEFORE INSERT ON annotation_picture
    FOR EACH ROW EXECUTE FUNCTION annotation_check_picture();

CREATE TRIGGER annotation_picture_fixed BEFORE UPDATE ON annotation_picture
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a picture never changes');

CREATE FUNCTION annotation_check_moved_picture() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_picture WHERE record_id = NEW.id) AND 'crowd' = (
        SELECT oracle FROM annotation_project
        WHERE id = (SELECT project_id FROM annotation_dataset WHERE id = NEW.dataset_id)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_picture_in_sight',
            MESSAGE = 'behind a gate no record keeps a picture';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_moved_with_picture AFTER UPDATE OF dataset_id ON annotation_record
    FOR EACH ROW WHEN (OLD.dataset_id IS DISTINCT FROM NEW.dataset_id)
    EXECUTE FUNCTION annotation_check_moved_picture();

CREATE FUNCTION annotation_drop_picture() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotation_picture WHERE record_id = OLD.id;
    RETURN NULL;
END $$;

CREATE TRIGGER annotation_record_without_picture AFTER UPDATE OF emptied ON annotation_record
    FOR EACH ROW WHEN (NEW.emptied)
    EXECUTE FUNCTION annotation_drop_picture();

CREATE TRIGGER annotation_record_gone_with_picture AFTER DELETE ON annotation_record
    FOR EACH ROW EXECUTE FUNCTION annotation_drop_picture();

-- For the label pages, as a record is: of a question that was asked, and by its record's id.
CREATE FUNCTION annotation_asked_picture(asked bigint)
RETURNS TABLE (width smallint, height smallint, content bytea)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT picture.width, picture.height, picture.content FROM annotation_picture picture
        WHERE picture.record_id = asked
            AND EXISTS (SELECT FROM annotation_query query WHERE query.record_id = asked AND query.state <> 'unasked');
END $$;

REVOKE EXECUTE ON FUNCTION annotation_asked_picture(bigint) FROM PUBLIC;
