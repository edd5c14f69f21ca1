-- A second coin for the same record, or another rate beside coins already drawn, would make every charge too small.
CREATE FUNCTION learner_coins_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'secret coins are drawn once' USING ERRCODE = 'check_violation', CONSTRAINT = 'learner_coins_stay';
END
$$;

CREATE TRIGGER learner_coins_stay BEFORE UPDATE ON learner_secretdraw
    FOR EACH ROW EXECUTE FUNCTION learner_coins_stay();

CREATE FUNCTION learner_rate_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF annotation_settings_differ(OLD.configuration_id, NEW.configuration_id, 'selection', 'selection_rate', 'block_growth')
    AND EXISTS (
        SELECT FROM learner_secretdraw draw JOIN annotation_dataset dataset ON dataset.id = draw.dataset_id
        WHERE dataset.project_id = NEW.id
    ) THEN
        RAISE EXCEPTION 'the coins of this project are drawn, so its selection stays' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'learner_rate_stays';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER learner_rate_stays BEFORE UPDATE OF configuration_id ON annotation_project
    FOR EACH ROW WHEN (OLD.configuration_id IS DISTINCT FROM NEW.configuration_id)
    EXECUTE FUNCTION learner_rate_stays();

-- A secret choice beside no block would have no public time at which it closes, and any other has no block.
CREATE FUNCTION learner_round_in_blocks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.block IS NOT NULL) <> EXISTS (
        SELECT FROM annotation_knownchoice
        WHERE kind = 'strategy' AND name = NEW.strategy AND facts -> 'in_blocks' = 'true'
    ) THEN
        RAISE EXCEPTION 'a round has a block where its strategy asks in blocks' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'learner_round_in_blocks';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER learner_round_in_blocks BEFORE INSERT OR UPDATE OF strategy, block ON learner_round
    FOR EACH ROW EXECUTE FUNCTION learner_round_in_blocks();
