CREATE TRIGGER annotation_guidelines_fixed BEFORE UPDATE ON annotation_guidelines
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION annotation_refuse('a version of the guidelines never changes');

-- It is compressed already, and lies beside the row, which is read without it.
ALTER TABLE annotation_guidelinepicture ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE annotation_guidelinepicture
    ADD CONSTRAINT annotation_guidelinepicture_bytes CHECK (octet_length(content) BETWEEN 1 AND 1048576);
ALTER TABLE annotation_guidelinepicture
    ADD CONSTRAINT annotation_guidelinepicture_digest CHECK (digest = encode(sha256(content), 'hex'));

CREATE TRIGGER annotation_guidelinepicture_fixed BEFORE UPDATE ON annotation_guidelinepicture
    FOR EACH ROW EXECUTE FUNCTION annotation_refuse('a picture of the guidelines never changes');

-- What a browser, a backup and a copy of a project's guidelines hold stays small.
CREATE FUNCTION annotation_check_guidelinepictures() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Two that add at once see each other.
    PERFORM FROM annotation_project WHERE id = NEW.project_id FOR NO KEY UPDATE;
    IF (
        SELECT count(*) >= 40 OR coalesce(sum(octet_length(content)), 0) + octet_length(NEW.content) > 16777216
        FROM annotation_guidelinepicture WHERE project_id = NEW.project_id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'guidelines have at most 40 pictures, of 16 MiB together';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_guidelinepicture_room BEFORE INSERT ON annotation_guidelinepicture
    FOR EACH ROW EXECUTE FUNCTION annotation_check_guidelinepictures();
