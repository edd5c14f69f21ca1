-- What the database knows of events by itself: their unit, their place in a series, and a price that is never too low.
-- `privacy/ledger/rules.py` holds the same rules; tests compare both over every kind of event.

-- What names no unit protects one record.
CREATE FUNCTION privacy_event_unit(event jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN event ? 'unit' THEN event ->> 'unit'
        WHEN event ->> 'kind' = 'label_training' THEN 'answer'
        WHEN event ->> 'kind' = 'gate_of_snapshot' THEN event -> 'inner' ->> 'unit'
        ELSE 'record'
    END
$$;

CREATE FUNCTION privacy_event_continues(event jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE event ->> 'kind'
        WHEN 'secret_sample' THEN (event ->> 'released_before')::float8 > 0
        WHEN 'secret_block' THEN jsonb_path_exists(event, '$.attempts[*] ? (@ > 0)')
        WHEN 'gate_window' THEN (event ->> 'epochs')::bigint > 0
        WHEN 'composed_gate_window' THEN (event ->> 'epochs')::bigint > 0
        WHEN 'screen_round' THEN true
        ELSE coalesce(event ->> 'series' = 'continued', false)
    END
$$;

-- Within the range whose exponentials neither overflow nor vanish.
CREATE FUNCTION privacy_exp(exponent float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT exp(greatest(-600, least(600, exponent)))
$$;

-- The smallest epsilon of Gaussian noise at a delta, up to 600: Balle and Wang 2018, theorem 8.
CREATE FUNCTION privacy_gaussian_epsilon(mu float8, delta float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    low float8 := 0;
    high float8 := 600;
    middle float8;
BEGIN
    IF mu = 0 THEN
        RETURN 0;
    END IF;
    FOR halving IN 1..60 LOOP
        middle := (low + high) / 2;
        IF erfc((middle / mu - mu / 2) / sqrt(2)) - exp(middle) * erfc((middle / mu + mu / 2) / sqrt(2)) > 2 * delta THEN
            low := middle;
        ELSE
            high := middle;
        END IF;
    END LOOP;
    RETURN low;
END $$;

-- ln(1 + sum of q (e^epsilon - 1)) over the blocks of a series, each tried so often.
CREATE FUNCTION privacy_mixture_epsilon(series jsonb, attempts jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT ln(1 + sum(rate::float8 * (privacy_exp(epsilon::float8 * coalesce(tried::float8, 1)) - 1)))
    FROM ROWS FROM (
        jsonb_array_elements_text(series -> 'rates'),
        jsonb_array_elements_text(series -> 'epsilons'),
        jsonb_array_elements_text(attempts)
    ) AS block (rate, epsilon, tried)
$$;

-- Attempts, or epochs and repeats, once the run of an event is made.
CREATE FUNCTION privacy_event_counted(event jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN event ->> 'kind' = 'secret_block' THEN jsonb_set(
            event -> 'attempts', ARRAY[((event ->> 'block')::int - 1)::text],
            to_jsonb((event -> 'attempts' ->> ((event ->> 'block')::int - 1))::int + 1)
        )
        WHEN (event ->> 'epoch')::bigint > (event ->> 'epochs')::bigint
            THEN jsonb_build_array(event -> 'epoch', event -> 'repeats')
        ELSE jsonb_build_array(event -> 'epochs', (
            SELECT jsonb_agg(epoch ORDER BY epoch::bigint)
            FROM jsonb_array_elements((event -> 'repeats') || (event -> 'epoch')) AS epoch
        ))
    END
$$;

-- How far, in standard deviations, one neighbour moves what an event of Gaussian noise releases at once; else null.
CREATE FUNCTION privacy_event_mu(event jsonb, adjacency text) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    moved CONSTANT float8 := CASE adjacency WHEN 'replace' THEN 2 ELSE 1 END;
    norm CONSTANT float8 := event ->> 'norm_bound';
    mu float8;
BEGIN
    CASE event ->> 'kind'
    WHEN 'gaussian' THEN
        mu := (event ->> 'sensitivity_l2')::float8 / (event ->> 'sigma')::float8;
        RETURN CASE event ->> 'stated_for' WHEN adjacency THEN mu ELSE moved * mu END;
    WHEN 'sums' THEN
        mu := moved * moved * (event ->> 'labels_per_record')::float8 * (norm / (event ->> 'class_sigma')::float8) ^ 2;
        IF (event ->> 'moment_sigma')::float8 > 0 THEN
            mu := mu + moved * (norm ^ 2 / (event ->> 'moment_sigma')::float8) ^ 2;
        END IF;
        RETURN sqrt(mu);
    WHEN 'running_sums' THEN
        -- A record meets its own batch's release in full, and those after it in part.
        RETURN privacy_event_mu(event -> 'sums', adjacency);
    WHEN 'gradient_steps', 'centered_gradient_steps', 'span_steps' THEN
        mu := (event ->> 'steps')::float8
            * ((event ->> 'residual_bound')::float8 * norm / (event ->> 'sigma')::float8) ^ 2;
        mu := greatest(moved * moved * mu, mu + (event ->> 'count_sigma')::float8 ^ -2);
        RETURN sqrt(mu + coalesce((moved * norm / (event ->> 'center_sigma')::float8) ^ 2, 0));
    WHEN 'picked_fit' THEN
        -- A record moves each count but the first, to which all others are compared.
        IF event ->> 'noise' = 'gaussian' THEN
            RETURN sqrt(privacy_event_mu(event -> 'inner', adjacency) ^ 2
                + moved * moved * ((event ->> 'candidates')::float8 - 1) / (event ->> 'scale')::float8 ^ 2);
        END IF;
    WHEN 'measured_fit' THEN
        -- A record is learned from or counted; one that is replaced may turn from the one to the other.
        mu := ((event ->> 'spans_per_record')::float8 / (event ->> 'scale')::float8) ^ 2;
        RETURN greatest(
            privacy_event_mu(event -> 'inner', adjacency),
            sqrt((moved + 1) * mu),
            CASE adjacency WHEN 'replace' THEN sqrt(privacy_event_mu(event -> 'inner', 'null') ^ 2 + 2 * mu) END
        );
    WHEN 'minibatch_sgd' THEN
        IF event ->> 'noise' = 'gaussian' THEN
            RETURN moved * norm / (event ->> 'noise_scale')::float8;
        END IF;
    WHEN 'output_perturbation' THEN
        IF event ->> 'noise' = 'gaussian' THEN
            RETURN privacy_minimiser_moves(event, moved) / (event ->> 'noise_scale')::float8;
        END IF;
    WHEN 'mutual_information_ogd' THEN
        RETURN 2 * (event ->> 'lipschitz')::float8 / (event ->> 'sigma')::float8;
    WHEN 'bandit_ogd' THEN
        RETURN 2 * (event ->> 'dimension')::float8 * (event ->> 'loss_bound')::float8
            / ((event ->> 'radius')::float8 * (event ->> 'sigma')::float8);
    ELSE
        NULL;
    END CASE;
    RETURN NULL;
END $$;

CREATE FUNCTION privacy_minimiser_moves(event jsonb, moved float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT moved * (event ->> 'gradient_bound')::float8 / (event ->> 'regularization')::float8
        / CASE event ->> 'form' WHEN 'mean' THEN (event ->> 'n')::float8 ELSE 1 END
$$;

-- Laplace noise is charged by the sum of the coordinates.
CREATE FUNCTION privacy_l1(event jsonb) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE event ->> 'noise' WHEN 'laplace' THEN sqrt((event ->> 'dimension')::float8) ELSE 1 END
$$;

-- Runs that a window of uploads has paid for: its width, and the repeats within any so many epochs at the most.
CREATE FUNCTION privacy_window_paid(width bigint, counted jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN (counted ->> 0)::bigint = 0 THEN 0 ELSE width + coalesce((
        SELECT max((
            SELECT count(*) FROM jsonb_array_elements_text(counted -> 1) AS other
            WHERE other::bigint BETWEEN first::bigint AND first::bigint + width - 1
        )) FROM jsonb_array_elements_text(counted -> 1) AS first
    ), 0) END
$$;

-- At most what an event costs: exact but for grids and rounding where a closed form says it, nothing where none does.
CREATE FUNCTION privacy_least_cost(event jsonb, adjacency text, OUT epsilon float8, OUT delta float8, OUT rho float8)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    kind CONSTANT text := event ->> 'kind';
    moved CONSTANT float8 := CASE adjacency WHEN 'replace' THEN 2 ELSE 1 END;
    times float8 := coalesce((event ->> 'n_models')::float8, (event ->> 'updates_per_record')::float8, 1);
    mu CONSTANT float8 := privacy_event_mu(event, adjacency);
    inner_cost record;
    selected float8;
    skipped float8;
BEGIN
    epsilon := 0;
    delta := 0;
    IF mu IS NOT NULL THEN
        delta := coalesce(event ->> 'delta', event -> 'sums' ->> 'delta')::float8;
        epsilon := CASE WHEN delta > 0 THEN privacy_gaussian_epsilon(mu, delta) WHEN mu > 0 THEN 'Infinity' ELSE 0 END;
        rho := mu ^ 2 / 2;
    END IF;
    CASE kind
    WHEN 'minibatch_sgd' THEN
        IF mu IS NULL THEN
            epsilon := privacy_l1(event) * moved * (event ->> 'norm_bound')::float8 / (event ->> 'noise_scale')::float8;
        END IF;
    WHEN 'output_perturbation' THEN
        IF mu IS NULL THEN
            epsilon := privacy_l1(event) * privacy_minimiser_moves(event, moved) / (event ->> 'noise_scale')::float8;
        END IF;
    WHEN 'objective_perturbation' THEN
        epsilon := (event ->> 'epsilon_prime')::float8 * moved
            / CASE event ->> 'adjacency' WHEN 'replace' THEN 2 ELSE 1 END
            + ln(1 + (event ->> 'curvature')::float8 * (event ->> 'norm_bound')::float8 ^ 2
                / ((event ->> 'regularization')::float8 + (event ->> 'extra_regularization')::float8));
    WHEN 'bernoulli_screen', 'exposure_capped_screen' THEN
        selected := ln((event ->> 'q_hi')::float8 / (event ->> 'q_lo')::float8);
        skipped := ln((1 - (event ->> 'q_lo')::float8) / (1 - (event ->> 'q_hi')::float8));
        times := coalesce((event ->> 'exposures')::float8, 1);
        epsilon := greatest(selected, skipped) + (times - 1) * skipped;
        rho := least(times * (selected + skipped) ^ 2 / 8, epsilon ^ 2 / 2);
        times := 1;
    WHEN 'exponential_screen' THEN
        epsilon := (event ->> 'epsilon')::float8;
        selected := (event ->> 'threshold')::float8 * epsilon
            / ((event ->> 'norm_bound')::float8 - (event ->> 'threshold')::float8);
        skipped := ln(1 + privacy_exp(-selected) * (1 - privacy_exp(-epsilon)) / (1 - privacy_exp(-selected)));
        rho := (epsilon + skipped) ^ 2 / 8;
        epsilon := greatest(epsilon, skipped);
    WHEN 'top_c' THEN
        -- Every pick of a batch tells at least what the first one does.
        selected := (event ->> 'scale')::float8;
        skipped := (event ->> 'picks')::float8
            * ln(1 + (privacy_exp(selected) - 1) / (event ->> 'pool_size')::float8);
        epsilon := CASE event ->> 'series'
            WHEN 'single' THEN greatest(selected, skipped)
            WHEN 'opened' THEN selected + skipped
            ELSE skipped
        END;
        rho := selected ^ 2 / 8;
    WHEN 'stream' THEN
        IF (event ->> 'selection_visible')::boolean THEN
            inner_cost := privacy_least_cost(event -> 'update', adjacency);
            selected := ln((event ->> 'q_hi')::float8 / (event ->> 'q_lo')::float8);
            -- With one rate, which may be 1, a coin tells nothing.
            skipped := CASE WHEN event -> 'q_lo' = event -> 'q_hi' THEN 0
                ELSE ln((1 - (event ->> 'q_lo')::float8) / (1 - (event ->> 'q_hi')::float8)) END;
            epsilon := greatest(skipped, selected + inner_cost.epsilon);
            rho := least((selected + skipped) ^ 2 / 8 + inner_cost.rho, epsilon ^ 2 / 2);
        ELSE
            inner_cost := privacy_least_cost(event -> 'update', 'null');
            epsilon := ln(1 + (event ->> 'q_hi')::float8 * (privacy_exp(inner_cost.epsilon) - 1));
        END IF;
    WHEN 'k_anonymity_gate' THEN
        times := moved * (event ->> 'texts_per_contributor')::float8;
        epsilon := (event ->> 'epsilon')::float8;
        -- A text of k records is released with all of them in the sample, and never with one fewer.
        delta := privacy_exp((event ->> 'k')::float8 * ln((event ->> 'sampling_rate')::float8));
    WHEN 'composed_capped_gate' THEN
        -- The product of m texts costs one text's epsilon at least, and m times its delta.
        epsilon := (event ->> 'epsilon')::float8;
        delta := moved * (event ->> 'texts_per_contributor')::float8
            * privacy_exp((event ->> 'k')::float8 * ln((event ->> 'sampling_rate')::float8));
    WHEN 'threshold_gate' THEN
        epsilon := (event ->> 'epsilon')::float8;
        delta := (event ->> 'delta')::float8;
        IF event ->> 'noise' = 'weighted_gaussian' THEN
            rho := least(epsilon ^ 2, (event ->> 'noise_scale')::float8 ^ -2) / 2;
        ELSE
            times := moved * (event ->> 'texts_per_contributor')::float8;
        END IF;
    WHEN 'picked_fit' THEN
        IF mu IS NULL THEN
            inner_cost := privacy_least_cost(event -> 'inner', adjacency);
            selected := moved * (event ->> 'scale')::float8;
            epsilon := inner_cost.epsilon + selected;
            delta := inner_cost.delta;
            rho := inner_cost.rho + selected ^ 2 / 8;
        END IF;
    WHEN 'class_counts' THEN
        epsilon := moved * (event ->> 'counted')::float8 / (event ->> 'scale')::float8;
    WHEN 'gate_of_snapshot', 'label_training' THEN
        SELECT cost.* INTO epsilon, delta, rho FROM privacy_least_cost(event -> 'inner', 'null') AS cost;
        IF event -> 'inner' ->> 'kind' = 'picked_fit' THEN
            -- Another label moves the counts that are drawn from both ways, whatever the loss.
            selected := (event -> 'inner' ->> 'scale')::float8;
            epsilon := epsilon + (moved - 1) * selected;
            rho := rho + (moved * moved - 1) * selected ^ 2 / 8;
        END IF;
    WHEN 'gate_window', 'composed_gate_window' THEN
        SELECT cost.* INTO epsilon, delta, rho FROM privacy_least_cost(event -> 'inner', adjacency) AS cost;
        times := privacy_window_paid((event ->> 'window')::bigint, privacy_event_counted(event))
            - privacy_window_paid((event ->> 'window')::bigint, jsonb_build_array(event -> 'epochs', event -> 'repeats'));
        IF kind = 'composed_gate_window' AND NOT privacy_event_continues(event) THEN
            -- The product of all runs costs one run's epsilon at least, and all their deltas.
            epsilon := (event -> 'inner' ->> 'epsilon')::float8;
            delta := times * delta;
            rho := NULL;
            times := 1;
        END IF;
    WHEN 'secret_sample' THEN
        SELECT cost.* INTO inner_cost FROM privacy_least_cost(event -> 'inner', 'null') AS cost;
        selected := (event ->> 'rate')::float8;
        selected := selected / (selected + (1 - selected) * privacy_exp(-(event ->> 'released_before')::float8));
        epsilon := ln(1 + selected * (privacy_exp(inner_cost.epsilon) - 1));
        delta := (event ->> 'rate')::float8 * inner_cost.delta;
    WHEN 'secret_series' THEN
        epsilon := privacy_mixture_epsilon(event, '[]');
    WHEN 'secret_block' THEN
        epsilon := privacy_mixture_epsilon(event -> 'series', privacy_event_counted(event))
            - privacy_mixture_epsilon(event -> 'series', event -> 'attempts');
        rho := 'Infinity';
    WHEN 'randomized_answers' THEN
        epsilon := ln((event ->> 'odds')::float8 / 2::float8 ^ 32);
        times := (event ->> 'randomizations')::float8 * (event ->> 'questions_per_annotator')::float8;
    ELSE
        NULL;
    END CASE;
    rho := coalesce(rho, epsilon ^ 2 / 2);
    IF times = 0 THEN
        epsilon := 0;
        delta := 0;
        rho := 0;
    ELSE
        epsilon := times * epsilon;
        delta := times * delta;
        rho := times * rho;
    END IF;
END $$;

-- Refuse a reservation that is not what its event says: its mechanism, its unit, or at least its price.
CREATE FUNCTION privacy_check_event(entry privacy_ledgerentry, account privacy_budgetaccount)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event CONSTANT jsonb := entry.event_json;
    lowest record;
BEGIN
    IF entry.mechanism IS DISTINCT FROM event ->> 'kind' THEN
        PERFORM privacy_refuse('privacy_entry_mechanism', 'the mechanism is not the kind of the event');
    END IF;
    IF privacy_event_unit(event) <> account.unit
        AND (entry.epsilon_nano, entry.delta_atto, entry.rho_nano) IS DISTINCT FROM (0::bigint, 0::bigint, 0::bigint)
    THEN
        PERFORM privacy_refuse('privacy_entry_unit', 'the event protects another unit than the account');
    END IF;
    lowest := privacy_least_cost(event, account.adjacency);
    -- A millionth for what floating point may do to the sums here; a price in the ledger is rounded up.
    IF entry.epsilon_nano < lowest.epsilon * (1e9 - 1e3) - 1 OR entry.delta_atto < lowest.delta * (1e18 - 1e12) - 1
        OR entry.rho_nano < lowest.rho * (1e9 - 1e3) - 1
    THEN
        PERFORM privacy_refuse('privacy_entry_price', 'the price is less than the event costs');
    END IF;
END $$;

-- Is an event the next step of the series of another one?
CREATE FUNCTION privacy_event_follows(event jsonb, before jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(CASE event ->> 'kind'
        WHEN 'secret_sample' THEN before ->> 'kind' = 'secret_sample'
            AND (before ->> 'rate')::float8 <= (event ->> 'rate')::float8
            AND (event ->> 'released_before')::float8 >= (before ->> 'released_before')::float8
                + (1 - 1e-6) * (SELECT cost.epsilon FROM privacy_least_cost(before -> 'inner', 'null') AS cost)
        WHEN 'secret_block' THEN before ->> 'kind' = 'secret_block' AND before -> 'series' = event -> 'series'
            AND event -> 'attempts' = privacy_event_counted(before)
        WHEN 'screen_round' THEN before ->> 'kind' IN ('exposure_capped_screen', 'screen_round')
            AND (event ->> 'q_hi')::float8 <= (before ->> 'q_hi')::float8
            AND (event ->> 'q_lo')::float8 >= (before ->> 'q_lo')::float8
        ELSE before ->> 'kind' = event ->> 'kind' AND CASE
            WHEN event ->> 'kind' IN ('gate_window', 'composed_gate_window')
                THEN (before -> 'inner', before -> 'window') = (event -> 'inner', event -> 'window')
                AND jsonb_build_array(event -> 'epochs', event -> 'repeats') = privacy_event_counted(before)
            ELSE before ->> 'series' IN ('opened', 'continued')
                AND coalesce((event ->> 'scale')::float8 <= (before ->> 'scale')::float8, true)
            END
    END, false)
$$;
