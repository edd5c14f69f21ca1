-- A study is opened for a crowd alone: it would show private records to strangers.
CREATE FUNCTION prolific_check_crowd_study() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM annotation_project WHERE id = NEW.project_id AND oracle = 'crowd')
        AND EXISTS (SELECT FROM annotation_crowdlink WHERE id = NEW.link_id AND project_id = NEW.project_id)
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'a study belongs to a crowd project and to a link of it';
END $$;

CREATE TRIGGER prolific_crowdstudy_of_a_crowd BEFORE INSERT OR UPDATE OF project_id, link_id ON prolific_crowdstudy
    FOR EACH ROW EXECUTE FUNCTION prolific_check_crowd_study();

-- What was promised or paid is not rewritten: pay, places, and a study that the platform knows.
CREATE FUNCTION prolific_check_crowd_study_stays() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER prolific_crowdstudy_stays BEFORE UPDATE ON prolific_crowdstudy
    FOR EACH ROW EXECUTE FUNCTION prolific_check_crowd_study_stays();

-- The platform pays a sheet as often as it is asked, so one that may have been paid is never asked for again by itself:
-- from "being paid" it goes back only where the platform said that it took nothing.
CREATE FUNCTION prolific_check_bonus_order() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER prolific_bonussheet_never_twice BEFORE UPDATE OF state ON prolific_bonussheet
    FOR EACH ROW EXECUTE FUNCTION prolific_check_bonus_order();

-- A verdict that was carried out, or refused, is not carried out again.
CREATE FUNCTION prolific_check_verdict_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'wanted' OR NEW.state = OLD.state THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
        MESSAGE = 'a verdict that is settled stays so';
END $$;

CREATE TRIGGER prolific_verdict_settled_once BEFORE UPDATE OF state ON prolific_crowdverdict
    FOR EACH ROW EXECUTE FUNCTION prolific_check_verdict_order();

-- What all studies of a project cost at most, with the fee, in hundredths: places of one that is over are those approved.
CREATE FUNCTION prolific_promised_cents(project bigint) RETURNS numeric LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(sum(ceil(
        (
            CASE WHEN study.state IN ('COMPLETED', 'DISCARDED') THEN study.approved
                ELSE greatest(study.places, study.approved) END::numeric * study.reward_cents
            + study.forgotten_bonus_cents
            + coalesce((
                SELECT sum(line.amount_cents) FROM prolific_bonusline line
                JOIN prolific_bonussheet sheet ON sheet.id = line.sheet_id
                WHERE sheet.study_id = study.id AND sheet.state <> 'refused'
            ), 0)
        ) * (100 + study.fee_percent) / 100
    )), 0)
    FROM prolific_crowdstudy study WHERE study.project_id = project
$$;

-- The project first: of two who promise money at once the later one sees what the earlier one promised.
CREATE FUNCTION prolific_refuse_beyond_money(project bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most numeric;
BEGIN
    PERFORM FROM annotation_project WHERE id = project FOR NO KEY UPDATE;
    SELECT (annotation_settings(configuration_id) ->> 'money_limit')::numeric INTO most
    FROM annotation_project WHERE id = project;
    IF prolific_promised_cents(project) > most * 100 THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'prolific_studies_within_money',
            MESSAGE = 'places and bonuses of all studies stay within the project''s limit in money';
    END IF;
END $$;

CREATE FUNCTION prolific_check_study_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM prolific_refuse_beyond_money(project_id)
    FROM (SELECT DISTINCT project_id FROM promised ORDER BY project_id) found;
    RETURN NULL;
END $$;

CREATE TRIGGER prolific_crowdstudy_within_money AFTER INSERT ON prolific_crowdstudy
    REFERENCING NEW TABLE AS promised FOR EACH STATEMENT EXECUTE FUNCTION prolific_check_study_money();

CREATE FUNCTION prolific_check_bonus_money() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM prolific_refuse_beyond_money(project_id) FROM (
        SELECT DISTINCT study.project_id FROM promised
        JOIN prolific_bonussheet sheet ON sheet.id = promised.sheet_id
        JOIN prolific_crowdstudy study ON study.id = sheet.study_id ORDER BY study.project_id
    ) found;
    RETURN NULL;
END $$;

CREATE TRIGGER prolific_bonusline_within_money AFTER INSERT ON prolific_bonusline
    REFERENCING NEW TABLE AS promised FOR EACH STATEMENT EXECUTE FUNCTION prolific_check_bonus_money();

-- And what was promised to somebody is not rewritten.
CREATE FUNCTION prolific_check_bonus_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.sheet_id, NEW.submission_id, NEW.amount_cents)
            IS DISTINCT FROM (OLD.sheet_id, OLD.submission_id, OLD.amount_cents)
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'who gets a bonus, and how much, never changes';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER prolific_bonusline_stays BEFORE UPDATE ON prolific_bonusline
    FOR EACH ROW EXECUTE FUNCTION prolific_check_bonus_stays();

-- A session's temporary tables come first in its search path; one named like ours must not be read in its place.
DO $$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT oid FROM pg_proc WHERE proname LIKE 'prolific\_%' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', routine, current_schema());
    END LOOP;
END $$;
