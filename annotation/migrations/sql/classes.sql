-- How many classes a project may have; every page and every estimator is made for so many and no more.
ALTER TABLE annotation_project ADD CONSTRAINT annotation_project_classes CHECK (
    CASE WHEN jsonb_typeof(classes) = 'array' THEN jsonb_array_length(classes) BETWEEN 2 AND 1000 ELSE false END
);

-- Once people were asked with them or something was paid for, classes are never another and never in another place: a
-- stored answer is a place. One may have another name if the earlier one is noted. Further ones may come behind where answers are neither randomised among a declared number of
-- them nor steps of a scale, and where no stream has paid for its learner.
CREATE FUNCTION annotation_check_classes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked CONSTANT text := annotation_settings(NEW.configuration_id) ->> 'question_kind';
BEGIN
    IF NOT (
        EXISTS (SELECT FROM annotation_query WHERE project_id = OLD.id)
        OR EXISTS (
            SELECT FROM privacy_ledgerentry
            WHERE account_id IN (OLD.pool_account_id, OLD.labels_account_id) AND kind = 'reserve'
        )
    ) THEN
        RETURN NEW;
    END IF;
    IF jsonb_array_length(OLD.classes) <> jsonb_array_length(NEW.classes) AND (
        OLD.oracle <> 'trusted' OR OLD.arrival <> 'pool' OR asked IS NULL OR asked NOT IN ('choose', 'several', 'spans')
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the number of classes never changes after the first charge or question: it is what has a proof';
    END IF;
    IF EXISTS (
        SELECT FROM jsonb_array_elements(OLD.classes) WITH ORDINALITY AS was (name, place)
        WHERE coalesce(NEW.renamed_classes -> (was.name #>> '{}'), was.name)
            IS DISTINCT FROM NEW.classes -> (was.place::int - 1)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'the place of a class never changes after the first charge or question: further ones come behind';
    END IF;
    IF EXISTS (
        SELECT FROM jsonb_array_elements(NEW.classes) name
        GROUP BY lower(name #>> '{}') HAVING count(*) > 1 OR coalesce(lower(name #>> '{}'), '') !~ '\S'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'classes have names of their own';
    END IF;
    RETURN NEW;
END $$;

-- An earlier name is none that a class has now, and stands for one that is there.
ALTER TABLE annotation_project ADD CONSTRAINT annotation_project_renamed CHECK (
    CASE WHEN jsonb_typeof(renamed_classes) = 'object' THEN
        NOT jsonb_path_exists(renamed_classes, '$.keyvalue() ? (@.key == $now[*] || !(@.value == $now[*]))',
            jsonb_build_object('now', classes))
    ELSE false END
);

CREATE TRIGGER annotation_project_classes_stay BEFORE UPDATE OF classes ON annotation_project
    FOR EACH ROW WHEN (OLD.classes IS DISTINCT FROM NEW.classes) EXECUTE FUNCTION annotation_check_classes();

-- A class counts as another one of the same project: both are there, no merge leads on to another, and two classes stay.
-- Only where an answer names one class in a pool of experts: elsewhere the number of classes is what has a proof. Once a
-- training took answers under it, a merge stays.
CREATE FUNCTION annotation_check_merged_classes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    asked CONSTANT text := annotation_settings(NEW.configuration_id) ->> 'question_kind';
    was CONSTANT jsonb := CASE WHEN TG_OP = 'UPDATE' THEN OLD.merged_classes ELSE '{}' END;
BEGIN
    IF NEW.merged_classes <> '{}' AND (
        NEW.oracle <> 'trusted' OR NEW.arrival <> 'pool' OR asked IS DISTINCT FROM 'choose'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'classes are merged only where experts name one class of a pool''s record';
    END IF;
    IF EXISTS (
        SELECT FROM jsonb_each(NEW.merged_classes) AS one (name, said)
        WHERE NOT NEW.classes ? one.name OR NOT NEW.classes ? coalesce(one.said ->> 'into', '')
            OR NEW.merged_classes ? (one.said ->> 'into') OR (one.said ->> 'at')::timestamptz IS NULL
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a class counts as another one that is there and counts as itself';
    END IF;
    -- How many there are without a merge is said by the table itself.
    IF (
        CASE WHEN NEW.merged_classes = '{}' THEN false
            ELSE jsonb_array_length(NEW.classes) - (SELECT count(*) FROM jsonb_object_keys(NEW.merged_classes)) < 2 END
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, MESSAGE = 'two classes stay';
    END IF;
    IF EXISTS (
        SELECT FROM jsonb_each(was) AS one (name, said)
        WHERE NEW.merged_classes -> coalesce(NEW.renamed_classes ->> one.name, one.name) IS DISTINCT FROM
                one.said || jsonb_build_object(
                    'into', coalesce(NEW.renamed_classes ->> (one.said ->> 'into'), one.said ->> 'into')
                )
            AND (one.said ->> 'at')::timestamptz <= OLD.labels_used_at
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a training learned under this merge, so it stays';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_merges_hold
    BEFORE INSERT OR UPDATE OF classes, merged_classes, configuration_id, oracle, arrival ON annotation_project
    FOR EACH ROW EXECUTE FUNCTION annotation_check_merged_classes();
