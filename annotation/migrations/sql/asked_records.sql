-- What the process that serves the label pages may learn of records although it cannot read their table. Functions,
-- not views: a view would let whoever asks bring conditions of their own, which may see rows before they are left out.

-- A record whose question was asked, by its id and without its contributor.
CREATE FUNCTION annotation_asked_record(asked bigint)
RETURNS TABLE (id bigint, dataset_id bigint, row_number bigint, text text, payload jsonb, metadata jsonb)
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT record.id, record.dataset_id, record.row_number, record.text, record.payload, record.metadata
        FROM annotation_record record
        WHERE record.id = asked
            AND EXISTS (SELECT FROM annotation_query query WHERE query.record_id = asked AND query.state <> 'unasked');
END $$;

-- Whether the person was shown anything of the contributor of this record; yes or no, never who.
CREATE FUNCTION annotation_has_met(asked bigint, project bigint, person bigint) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM annotation_record record
            JOIN annotation_encounter met ON met.contributor = coalesce(record.contributor, int8send(record.id))
        WHERE record.id = asked AND met.project_id = project AND met.annotator_id = person
    );
END $$;

-- Whoever notes an encounter names the record, in eight bytes; here its contributor takes that place.
CREATE FUNCTION annotation_put_contributor() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    known bytea;
BEGIN
    SELECT record.contributor INTO known FROM annotation_record record
    WHERE record.id = ('x' || encode(NEW.contributor, 'hex'))::bit(64)::bigint;
    NEW.contributor := coalesce(known, NEW.contributor);
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_encounter_contributor BEFORE INSERT ON annotation_encounter
    FOR EACH ROW WHEN (octet_length(NEW.contributor) = 8)
    EXECUTE FUNCTION annotation_put_contributor();

-- They read what their callers may not, so nobody calls them but who was given the right.
REVOKE EXECUTE ON FUNCTION annotation_asked_record(bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION annotation_has_met(bigint, bigint, bigint) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION annotation_put_contributor() FROM PUBLIC;
