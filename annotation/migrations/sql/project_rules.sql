-- Settings that can never stand together, wherever each of them is stored. Comparing with what is absent is unknown, and
-- what is unknown is broken.
CREATE FUNCTION annotation_broken_rules(settings jsonb) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT rule FROM (
        SELECT settings ->> 'oracle' = 'crowd' AS crowd, settings ->> 'gate_kind' AS gate,
            settings ->> 'selection' AS selection, settings ->> 'update_policy' AS policy
    ) chosen, LATERAL (
        -- What is declared of what is chosen; of a choice that the database does not know nothing is, and others refuse it.
        SELECT coalesce(bool_or(facts -> 'hides_selection' = 'true'), false),
            coalesce(bool_or(facts -> 'by_chance' = 'true'), false),
            bool_or(parameters ? 'window_length') FILTER (WHERE kind = 'policy'),
            bool_or(parameters ? 'window_denominator') FILTER (WHERE kind = 'policy')
        FROM annotation_knownchoice
        WHERE kind = 'strategy' AND name = selection OR kind = 'policy' AND name = policy
    ) declared (secret, by_chance, has_length, has_denominator), LATERAL (
        SELECT
            (SELECT facts ->> 'teaches' FROM annotation_knownchoice
                WHERE kind = 'label_type' AND name = settings ->> 'question_kind'),
            (SELECT facts -> 'learns' FROM annotation_knownchoice
                WHERE kind = 'estimator' AND name = settings ->> 'estimator')
    ) learning (teaches, learns), LATERAL (
        SELECT (array_agg(facts -> 'needs'))[1], (array_agg(parameters))[1],
            coalesce(bool_or(facts -> 'uploads_together' = 'true'), false)
        FROM annotation_knownchoice
        WHERE kind = 'gate' AND name = gate
    ) gates (needs, asks, proved_together), LATERAL (VALUES
        -- What a document may hold of each number, its declaration says: a floor under 2, for one, is none.
        -- Of gates it says what each needs; what another has beside it, a project keeps no value of.
        ('crowd_has_gate', CASE WHEN crowd
            THEN settings ->> 'data_kind' = 'text' AND needs IS NOT NULL AND NOT EXISTS (
                SELECT FROM jsonb_array_elements_text(needs) needed WHERE settings ->> needed IS NULL
            ) AND NOT EXISTS (
                SELECT FROM annotation_knownchoice other, jsonb_object_keys(other.parameters) asked
                WHERE other.kind = 'gate' AND settings ->> asked IS NOT NULL AND NOT asks ? asked)
            ELSE coalesce(gate, '') = '' AND settings ->> 'labels_account_id' IS NULL END),
        -- A person may be in every upload: what is paid once for all of them protects a record, by a gate's own proof.
        ('uploads_together', NOT crowd OR settings ->> 'gate_window' IS NULL
            OR settings ->> 'privacy_unit' = 'record' AND proved_together),
        -- How many a secret block or a hidden window asks is secret, and stopping at a limit would tell.
        ('limit_tells_nothing',
            NOT secret OR num_nonnulls(settings ->> 'labels_limit', settings ->> 'money_limit') = 0),
        ('money_has_price', settings ->> 'money_limit' IS NULL OR settings ->> 'price_per_label' IS NOT NULL),
        -- Nor may one of its records keep another from being answered, as it would where a person stops at a limit.
        ('secrets_bind_nothing', NOT secret OR num_nonnulls(
            settings ->> 'answers_per_person', settings ->> 'answers_per_day', settings ->> 'encounter_limit') = 0),
        -- Which selections are sound in front of which oracle, `annotation_project_within_proof` says; here, that all is
        -- there that its charge rests on, and in order.
        ('selection_fits_oracle', selection <> '' AND NOT EXISTS (
            SELECT FROM annotation_knownchoice known, jsonb_each(known.parameters) declared
            WHERE known.kind = 'strategy' AND known.name = selection AND CASE
                WHEN settings ->> declared.key IS NULL
                    THEN declared.value -> 'charged' = 'true' AND NOT declared.value -> 'type' ? 'null'
                WHEN declared.value ? 'no_more_than'
                    THEN (settings ->> declared.key)::float8 > (settings ->> (declared.value ->> 'no_more_than'))::float8
            END)),
        -- Which policies and types of label a stream or a pool has, `annotation_project_within_proof` says, and of their
        -- numbers their ranges.
        ('stream', CASE settings ->> 'arrival'
            WHEN 'stream' THEN settings ->> 'oracle' = 'trusted' AND settings ->> 'overlap' = '1'
                AND num_nulls(settings ->> 'window_hours', settings ->> 'windows_ahead',
                    settings ->> 'updates_per_release') = 0
                AND (settings ->> 'window_length' IS NOT NULL) = has_length
                AND (settings ->> 'window_denominator' IS NOT NULL) = has_denominator
                AND policy <> ''
            ELSE settings ->> 'question_kind' <> '' AND settings ->> 'window_length' IS NULL AND policy <> '' END),
        ('features_said', settings ->> 'features' <> ''),
        -- Which estimators are sound, and what they need, `annotation_project_within_proof` says; one there must be.
        ('estimator_fits_oracle', settings ->> 'estimator' <> ''),
        ('release_plan', settings ->> 'labels_per_release' IS NOT NULL),
        -- What hands questions out and judges answers reads these at every click.
        ('labelling_said', num_nulls(settings ->> 'round_size', settings ->> 'overlap', settings ->> 'lease_seconds',
            settings ->> 'confirm_answers', settings ->> 'skips_to_set_aside', settings ->> 'gold_share',
            settings ->> 'gold_minimum', settings ->> 'aggregation') = 0),
        -- Who is asked about a question sees it, and a further person would show that the first ones disagree.
        ('crowd_fixed_overlap', NOT crowd OR settings ->> 'overlap_limit' IS NULL),
        -- What a crowd or a coin agreed on is corrected by nobody.
        ('crowd_keeps_answers', NOT crowd OR coalesce(settings ->> 'reviewed', 'disputed') = 'disputed'),
        -- When a question is reviewed must move nothing that is secret, and nothing that is charged by its place in time.
        ('review_share_proven', coalesce((settings ->> 'review_share')::float8, 0) = 0
            OR NOT crowd AND secret IS NOT TRUE AND settings ->> 'arrival' IS DISTINCT FROM 'stream'),
        ('quiet_hours', CASE num_nulls(settings ->> 'quiet_from', settings ->> 'quiet_until')
            WHEN 2 THEN true
            WHEN 0 THEN (settings ->> 'quiet_from')::time <> (settings ->> 'quiet_until')::time END),
        -- What asks for confirmations learns from them, and what knows nothing else from nothing else.
        ('confirm_is_learned', learns ? teaches OR teaches <> 'confirmations' AND NOT learns ? 'confirmations'),
        -- Several classes a record are learned by what has noise that is proven for them, and nothing is drawn by doubt.
        ('sets_are_sums', learns ? teaches OR teaches <> 'sets' AND NOT learns ? 'sets'),
        ('sets_fit_classes', teaches <> 'sets'
            OR (settings ->> 'labels_per_record')::int <= jsonb_array_length(settings -> 'classes') AND by_chance),
        ('scale_has_keys', settings ->> 'question_kind' <> 'rating' OR jsonb_array_length(settings -> 'classes') <= 11)
    ) rules (rule, holds)
    WHERE holds IS NOT TRUE
$$;

CREATE FUNCTION annotation_check_rules() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    broken CONSTANT text := (
        SELECT min(rule) FROM annotation_broken_rules(to_jsonb(NEW) || annotation_settings(NEW.configuration_id)) rule
    );
BEGIN
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'annotation_project_' || broken,
            MESSAGE = format('these settings never stand together: annotation_project_%s', broken);
    END IF;
    RETURN NEW;
END $$;

-- Triggers fire in the order of their names: a choice without a proof is refused as such before.
CREATE TRIGGER annotation_project_works_together
    BEFORE INSERT OR UPDATE OF oracle, arrival, privacy_unit, data_kind, classes, labels_account_id, configuration_id
    ON annotation_project FOR EACH ROW EXECUTE FUNCTION annotation_check_rules();
