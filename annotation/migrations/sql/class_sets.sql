-- Whether the number of a set of classes holds one of them: a bit each below 61, else ten bits for each member.
CREATE FUNCTION annotation_set_holds(answer bigint, place int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN answer < 2305843009213693952 THEN place < 61 AND (answer >> least(place, 61)) & 1 = 1
        ELSE EXISTS (SELECT FROM generate_series(0, 50, 10) shift WHERE (answer >> shift) & 1023 = place + 1)
    END
$$;
