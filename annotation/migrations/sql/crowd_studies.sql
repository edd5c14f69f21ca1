-- A study is opened for a crowd alone: it would show private records to strangers.
CREATE FUNCTION annotation_check_crowd_study() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND oracle = 'crowd')
        AND EXISTS (SELECT FROM annotation_crowdlink WHERE id = NEW.link_id AND project_id = NEW.project_id)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'a study belongs to a crowd project and to a link of it';
END $$;

CREATE TRIGGER annotation_crowdstudy_of_a_crowd BEFORE INSERT OR UPDATE OF project_id, link_id ON annotation_crowdstudy
    FOR EACH ROW EXECUTE FUNCTION annotation_check_crowd_study();

-- What was promised or paid is not rewritten: pay, places, and a study that the platform knows.
CREATE FUNCTION annotation_check_crowd_study_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.key, NEW.project_id, NEW.places, NEW.reward_cents, NEW.fee_percent)
            IS DISTINCT FROM (OLD.key, OLD.project_id, OLD.places, OLD.reward_cents, OLD.fee_percent)
        OR OLD.external_id NOT IN ('', NEW.external_id)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'places, pay and fee of a study, and which one it is, never change';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_crowdstudy_stays BEFORE UPDATE ON annotation_crowdstudy
    FOR EACH ROW EXECUTE FUNCTION annotation_check_crowd_study_stays();

-- The platform pays a sheet as often as it is asked, so one that may have been paid is never asked for again by itself:
-- from "being paid" it goes back only where the platform said that it took nothing.
CREATE FUNCTION annotation_check_bonus_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = OLD.state OR (OLD.state, NEW.state) IN (
        ('wanted', 'paying'), ('wanted', 'refused'),
        ('paying', 'paid'), ('paying', 'unclear'), ('paying', 'wanted'), ('paying', 'refused'),
        ('unclear', 'paid'), ('unclear', 'refused')
    ) THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'a paid, unclear or refused sheet of bonuses is never paid again';
END $$;

CREATE TRIGGER annotation_bonussheet_never_twice BEFORE UPDATE OF state ON annotation_bonussheet
    FOR EACH ROW EXECUTE FUNCTION annotation_check_bonus_order();

-- A verdict that was carried out, or refused, is not carried out again.
CREATE FUNCTION annotation_check_verdict_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'wanted' OR NEW.state = OLD.state THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'a verdict that is settled stays so';
END $$;

CREATE TRIGGER annotation_verdict_settled_once BEFORE UPDATE OF state ON annotation_crowdverdict
    FOR EACH ROW EXECUTE FUNCTION annotation_check_verdict_order();
