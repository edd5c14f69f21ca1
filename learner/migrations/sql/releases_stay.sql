-- A card that is issued anew changes what is promised, under a folder and digests of its own: never the model, never
-- what was spent, nothing of a retired release.
CREATE FUNCTION learner_release_stays() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    checked CONSTANT text[] := ARRAY['state', 'checks', 'held_back', 'released_at', 'retired_reason', 'mechanism_audit_id'];
    buried CONSTANT text[] := ARRAY['state', 'retired_reason', 'weights', 'features', 'configuration'];
    issued CONSTANT text[] := ARRAY['folder', 'digests', 'guarantee'];
    card CONSTANT text[] := ARRAY['card.md', 'privacy.json', 'manifest.json', 'manifest.sig'];
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'candidate' AND to_jsonb(NEW) - checked = to_jsonb(OLD) - checked THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.state = 'released' AND NEW.state = 'retired'
        AND to_jsonb(NEW) - 'state' - 'retired_reason' = to_jsonb(OLD) - 'state' - 'retired_reason' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.state = 'retired' AND to_jsonb(NEW) - buried = to_jsonb(OLD) - buried
        AND (NEW.weights, NEW.features, NEW.configuration) IS NOT DISTINCT FROM ('{}'::jsonb, '{}'::jsonb, '{}'::jsonb)
        AND EXISTS (SELECT FROM annotation_project WHERE id = OLD.project_id AND state = 'deleted')
    THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.state <> 'retired' AND to_jsonb(NEW) - issued = to_jsonb(OLD) - issued
        AND NEW.digests - card = OLD.digests - card AND NEW.digests ?& card
        AND NEW.digests ->> 'manifest.sig' <> OLD.digests ->> 'manifest.sig'
        AND NEW.folder <> OLD.folder AND NEW.guarantee <> OLD.guarantee
        AND learner_terms_but_limits(NEW.guarantee) = learner_terms_but_limits(OLD.guarantee)
    THEN
        RETURN NEW;
    END IF;
    -- Counts of its right answers store thresholds; what is promised and predicted stays.
    IF TG_OP = 'UPDATE' AND NEW.state <> 'retired' AND to_jsonb(NEW) - issued = to_jsonb(OLD) - issued
        AND NEW.digests - card - 'thresholds.json' = OLD.digests - card - 'thresholds.json'
        AND NEW.digests ?& (card || 'thresholds.json'::text)
        AND NEW.digests ->> 'manifest.sig' <> OLD.digests ->> 'manifest.sig'
        AND NEW.folder <> OLD.folder AND NEW.guarantee = OLD.guarantee
        AND EXISTS (
            SELECT FROM learner_sharesreport WHERE release_id = OLD.id AND grouping = 'confidence' AND state = 'done'
        )
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'a release can only be retired' USING ERRCODE = 'check_violation',
        CONSTRAINT = 'learner_release_stays';
END
$$;

CREATE TRIGGER learner_release_stays BEFORE UPDATE OR DELETE ON learner_modelrelease
    FOR EACH ROW EXECUTE FUNCTION learner_release_stays();
