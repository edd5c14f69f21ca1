CREATE FUNCTION annotation_check_kind_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    charged CONSTANT text := 'who is protected from whom never changes after the first charge';
BEGIN
    -- Before any lock: whoever settles a charge holds its account and may be waiting for this project's row.
    IF EXISTS (
        SELECT FROM privacy_ledgerentry
        WHERE account_id IN (OLD.pool_account_id, OLD.labels_account_id) AND kind = 'reserve'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, MESSAGE = charged;
    END IF;
    -- Whoever stores a question, an upload, a member or a first charge at this moment is waited for and then seen.
    PERFORM FROM annotation_project WHERE id = OLD.id FOR UPDATE;
    PERFORM FROM privacy_budgetaccount
    WHERE id IN (OLD.pool_account_id, OLD.labels_account_id) ORDER BY id FOR UPDATE;
    IF EXISTS (
        SELECT FROM privacy_ledgerentry
        WHERE account_id IN (OLD.pool_account_id, OLD.labels_account_id) AND kind = 'reserve'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, MESSAGE = charged;
    END IF;
    IF EXISTS (SELECT FROM annotation_query WHERE project_id = OLD.id)
        OR EXISTS (SELECT FROM annotation_gaterun WHERE project_id = OLD.id)
        OR EXISTS (SELECT FROM annotation_recordpost WHERE project_id = OLD.id)
        OR EXISTS (
            SELECT FROM annotation_dataset dataset JOIN annotation_job job ON job.id = dataset.job_id
            WHERE dataset.project_id = OLD.id AND dataset.role <> 'public_test' AND dataset.state <> 'refused'
                AND NOT (job.kind = 'stream' AND dataset.row_count = 0)
        )
    THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'who is protected from whom never changes once there are records or questions';
    END IF;
    IF NEW.oracle = 'crowd' AND EXISTS (
        SELECT FROM annotation_dataset dataset JOIN annotation_record record ON record.dataset_id = dataset.id
        WHERE dataset.project_id = OLD.id AND record.metadata IS NOT NULL
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_record_metadata',
            MESSAGE = 'behind a gate no record keeps columns of its owner';
    END IF;
    IF NEW.oracle = 'crowd' AND EXISTS (
        SELECT FROM annotation_dataset dataset JOIN annotation_record record ON record.dataset_id = dataset.id
            JOIN annotation_picture picture ON picture.record_id = record.id
        WHERE dataset.project_id = OLD.id
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_picture_in_sight',
            MESSAGE = 'behind a gate no record keeps a picture';
    END IF;
    -- Strangers who were let in to see gate output would see the records.
    IF OLD.oracle = 'crowd' AND NEW.oracle <> 'crowd' AND (
        EXISTS (SELECT FROM annotation_membership WHERE project_id = OLD.id AND role = 'annotator')
        OR EXISTS (
            SELECT FROM annotation_crowdlink
            WHERE project_id = OLD.id AND revoked_at IS NULL AND expires_at > now()
        )
        OR EXISTS (
            SELECT FROM annotation_invitation
            WHERE project_id = OLD.id AND role = 'annotator' AND revoked_at IS NULL AND expires_at > now()
                AND uses < maximum_uses
        )
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'annotators let in as strangers would see records';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_project_kind_fixed BEFORE UPDATE OF oracle, arrival, preset ON annotation_project
    FOR EACH ROW WHEN ((OLD.oracle, OLD.arrival, OLD.preset) IS DISTINCT FROM (NEW.oracle, NEW.arrival, NEW.preset))
    EXECUTE FUNCTION annotation_check_kind_change();

-- An upload that was on its way while the project became a stream, or the other way round.
CREATE FUNCTION annotation_check_pool_dataset() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    arrives text;
BEGIN
    SELECT arrival INTO arrives FROM annotation_project WHERE id = NEW.project_id FOR KEY SHARE;
    IF (arrives = 'stream') <> EXISTS (SELECT FROM annotation_job WHERE id = NEW.job_id AND kind = 'stream') THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME,
            MESSAGE = 'a stream takes no uploads into its pool, and a pool has no stream';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotation_dataset_fits_arrival BEFORE INSERT ON annotation_dataset
    FOR EACH ROW WHEN (NEW.role = 'pool') EXECUTE FUNCTION annotation_check_pool_dataset();
