-- What happens at a click on the label page. Functions, so that their statements are planned once a session: by the ORM
-- an answer and the next question take twice the processor.

-- Ends a lease with its label. The question's lock makes its answers come one after another, so that whoever gives the
-- last one sees all others. `label_id` is null without a lease, or where the page sent its answer before.
CREATE FUNCTION annotation_answer(of_assignment uuid, of_question bigint, choice bigint, page uuid)
RETURNS TABLE (
    label_id bigint, given_at timestamptz, supersedes bigint, state varchar, overlap smallint, drawn boolean
)
LANGUAGE plpgsql ROWS 1 SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    who bigint;
BEGIN
    SELECT query.state, query.overlap, query.drawn_for_review INTO state, overlap, drawn
    FROM annotation_query query WHERE query.id = of_question FOR NO KEY UPDATE;
    UPDATE annotation_assignment held SET state = 'labelled', finished_at = now()
    WHERE held.id = of_assignment AND held.state = 'leased' AND NOT EXISTS (
        SELECT FROM annotation_label sent WHERE sent.assignment_id = of_assignment AND sent.key = page)
    RETURNING held.annotator_id INTO who;
    IF who IS NOT NULL THEN
        INSERT INTO annotation_label (assignment_id, query_id, annotator_id, choice, key, supersedes_id, created_at)
        SELECT of_assignment, of_question, who, annotation_answer.choice, page, max(earlier.id), now()
        FROM annotation_label earlier WHERE earlier.assignment_id = of_assignment
        RETURNING id, created_at, supersedes_id INTO label_id, given_at, supersedes;
    END IF;
    RETURN NEXT;
END $$;

-- Settles a question and says whether somebody may wait for that: it was the last of its round, or there are enough new
-- labels for a training. Counting those of a long training at each answer would cost more than the answer: it is done at
-- about one in a hundredth of them, and the clock, which is to look at the project, finds what that misses. What has no majority counts like what has one:
-- a training that began seconds later would tell which it was.
CREATE FUNCTION annotation_close(
    of_question bigint, of_project bigint, final_state varchar, choice bigint, votes integer, agreeing integer,
    enough integer
)
RETURNS boolean LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    IF final_state = 'closed' THEN
        INSERT INTO annotation_consensus (project_id, query_id, choice, votes, agreeing, created_at)
        VALUES (of_project, of_question, annotation_close.choice, annotation_close.votes, annotation_close.agreeing, now());
    END IF;
    UPDATE annotation_query query SET state = final_state WHERE query.id = of_question;
    INSERT INTO annotation_duelook (project_id, due_at) VALUES (of_project, now());
    -- The order keeps the first look on the queue's index.
    IF NOT EXISTS (SELECT FROM annotation_query free
        WHERE free.project_id = of_project AND free.state = 'open' AND free.open_slots > 0 AND free.id <> of_question
        ORDER BY free.priority, free.id LIMIT 1)
    AND NOT EXISTS (SELECT FROM annotation_assignment held JOIN annotation_query other ON other.id = held.query_id
        WHERE held.project_id = of_project AND held.state = 'leased' AND other.state = 'open'
            AND other.id <> of_question) THEN
        RETURN true;
    END IF;
    RETURN random() * enough < 100 AND enough <= (SELECT count(*) FROM (
        SELECT FROM annotation_consensus unused JOIN annotation_project project ON project.id = of_project
        WHERE unused.project_id = of_project AND unused.id > project.labels_used_through LIMIT enough) some_unused
    ) + (SELECT count(*) FROM (
        SELECT FROM annotation_query given_up WHERE given_up.project_id = of_project
            AND given_up.state IN ('disputed', 'set_aside', 'withdrawn', 'in_review') LIMIT enough) some_given_up);
END $$;

-- Leases a person their next question and says what the label page shows beside it. A function, so that its statements
-- are planned once a session; they run as one transaction, so that no crash falls between a slot and its lease.
--
-- `among` narrows the choice for somebody who reached a limit: 'any', 'answered' (what they answered before), 'texts'
-- (what they were shown before) or 'contributors' (whose records they were shown before).
-- Limits of how far is looked are written out: of a parameter the planner expects a tenth of the queue, and sorts it.
-- The answer is one row; `held` is null where nothing is left, `was_chosen` then says that a second click was faster.
CREATE FUNCTION annotation_claim(
    of_project bigint, to_person bigint, lease uuid, seconds integer, among text, noting boolean, checking boolean,
    today timestamptz, pace_minutes integer, pace_from integer, at_place integer
)
RETURNS TABLE (
    held annotation_assignment, was_chosen boolean, done_today bigint, an_hour integer, waiting bigint,
    guidelines_seen integer
)
LANGUAGE plpgsql ROWS 1 SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    chosen bigint;
    hidden bigint;
    known bigint[];
    until CONSTANT timestamptz := now() + make_interval(secs => seconds);
    member annotation_membership;
BEGIN
    SELECT * INTO member FROM annotation_membership
    WHERE project_id = of_project AND user_id = to_person AND role = 'annotator';
    UPDATE annotation_assignment SET leased_until = until
    WHERE annotator_id = to_person AND project_id = of_project AND state = 'leased' AND place = at_place
    RETURNING * INTO held;
    IF held.id IS NULL AND member.paused_at IS NULL THEN
        -- What was assigned to the person comes before anything else. The scalar subquery is one index probe a row; as
        -- NOT EXISTS the planner may read all assignments of the person.
        IF among = 'any' THEN
            SELECT query.id INTO chosen FROM annotation_query query
            WHERE query.project_id = of_project AND query.state = 'open' AND query.open_slots > 0
                AND query.assigned_to_id = to_person
                AND coalesce((SELECT earlier.state FROM annotation_assignment earlier
                    WHERE earlier.query_id = query.id AND earlier.annotator_id = to_person), 'expired') = 'expired'
            ORDER BY query.priority, query.id LIMIT 1 FOR NO KEY UPDATE OF query SKIP LOCKED;
            IF chosen IS NULL THEN
                -- The last slot of a question that was assigned waits for whom it was assigned to.
                SELECT query.id INTO chosen FROM annotation_query query
                WHERE query.project_id = of_project AND query.state = 'open' AND query.open_slots > 0
                    AND (query.assigned_to_id IS NULL OR query.open_slots > 1)
                    AND coalesce((SELECT earlier.state FROM annotation_assignment earlier
                        WHERE earlier.query_id = query.id AND earlier.annotator_id = to_person), 'expired') = 'expired'
                ORDER BY query.priority, query.id LIMIT 1 FOR NO KEY UPDATE OF query SKIP LOCKED;
            END IF;
        ELSE
            IF among = 'answered' THEN
                known := ARRAY(SELECT given.query_id FROM annotation_label given WHERE given.annotator_id = to_person);
            ELSE
                known := ARRAY(
                    SELECT front.id FROM (
                        SELECT query.id, query.record_id FROM annotation_query query
                        WHERE query.project_id = of_project AND query.state = 'open' AND query.open_slots > 0
                        ORDER BY query.priority, query.id LIMIT 2000
                    ) front
                    WHERE CASE among WHEN 'contributors' THEN annotation_has_met(front.record_id, of_project, to_person)
                        ELSE EXISTS (SELECT FROM annotation_assignment met
                            WHERE met.query_id = front.id AND met.annotator_id = to_person) END
                );
            END IF;
            SELECT query.id INTO chosen FROM annotation_query query
            WHERE query.id = ANY (known)
                AND query.project_id = of_project AND query.state = 'open' AND query.open_slots > 0
                AND (query.assigned_to_id IS NULL OR query.open_slots > 1 OR query.assigned_to_id = to_person)
                AND coalesce((SELECT earlier.state FROM annotation_assignment earlier
                    WHERE earlier.query_id = query.id AND earlier.annotator_id = to_person), 'expired') = 'expired'
            ORDER BY query.assigned_to_id IS DISTINCT FROM to_person, query.priority, query.id
            LIMIT 1 FOR NO KEY UPDATE OF query SKIP LOCKED;
        END IF;
        -- A hidden check comes in the place of something else: one that came alone would be known for what it is.
        IF checking AND chosen IS NOT NULL THEN
            SELECT query.id INTO hidden FROM annotation_query query
            JOIN annotation_goldquery gold ON gold.query_id = query.id AND gold.retired_at IS NULL
            WHERE query.project_id = of_project AND query.state = 'gold' AND query.open_slots > 0
                AND NOT EXISTS (SELECT FROM annotation_assignment seen
                    WHERE seen.query_id = query.id AND seen.annotator_id = to_person)
            ORDER BY random() LIMIT 1 FOR NO KEY UPDATE OF query SKIP LOCKED;
        END IF;
        -- The slot is taken from what was inserted: where a second click came first, nothing is, and no slot is lost.
        INSERT INTO annotation_assignment AS earlier
            (id, project_id, query_id, annotator_id, state, leased_until, skip_reason, place, created_at)
        SELECT lease, of_project, coalesce(hidden, chosen), to_person, 'leased', until, '', at_place, now()
        WHERE chosen IS NOT NULL
        ON CONFLICT (query_id, annotator_id) DO UPDATE
            SET state = 'leased', leased_until = excluded.leased_until, place = excluded.place, finished_at = NULL
            WHERE earlier.state = 'expired'
        RETURNING * INTO held;
        UPDATE annotation_query query
        SET open_slots = query.open_slots - 1, assigned_to_id = nullif(query.assigned_to_id, to_person)
        WHERE query.id = held.query_id;
        IF noting AND hidden IS NULL THEN
            INSERT INTO annotation_encounter (project_id, annotator_id, contributor)
            SELECT of_project, to_person, int8send(query.record_id) FROM annotation_query query
            WHERE query.id = held.query_id AND query.record_id IS NOT NULL
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    RETURN QUERY SELECT held, chosen IS NOT NULL,
        (SELECT count(*) FROM annotation_assignment done
         WHERE done.annotator_id = to_person AND done.project_id = of_project AND done.state = 'labelled'
             AND done.finished_at >= today),
        (SELECT CASE WHEN count(*) >= pace_from THEN
             (3600 * (count(*) - 1)
              / greatest(1, extract(epoch FROM max(recent.finished_at) - min(recent.finished_at))))::integer
         END FROM annotation_assignment recent
         WHERE recent.annotator_id = to_person AND recent.project_id = of_project AND recent.state = 'labelled'
             AND recent.finished_at >= now() - make_interval(mins => pace_minutes)),
        -- A truth value, of which the planner expects half: of a comparison it expects so few that it sorts all.
        (SELECT count(*) FROM (
            SELECT FROM annotation_query free
            WHERE free.project_id = of_project AND free.state = 'open' AND free.open_slots > 0
                AND free.id <> coalesce(held.query_id, 0)
                AND (free.assigned_to_id IS NULL OR free.open_slots > 1 OR free.assigned_to_id = to_person)
                AND coalesce((SELECT earlier.state = 'expired' FROM annotation_assignment earlier
                    WHERE earlier.query_id = free.id AND earlier.annotator_id = to_person), true)
            ORDER BY free.priority, free.id LIMIT 101) some_free),
        member.guidelines_seen;
END $$;

-- After a large round the planner must not plan the next claim by the counts of a short queue. Only its owner may do this.
CREATE FUNCTION annotation_count_questions() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    ANALYZE annotation_query;
END $$;
REVOKE EXECUTE ON FUNCTION annotation_count_questions() FROM PUBLIC;
