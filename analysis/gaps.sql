-- Purpose: the longest gaps between tokens, and whether other requests got tokens meanwhile.
-- Inputs:  events, requests; $1 how many.
-- Output:
--   request_id         VARCHAR  text     The request.
--   client_request_id  VARCHAR  text     Its x-request-id, or NULL.
--   model              VARCHAR  text     Model that answered, or NULL.
--   status             VARCHAR  text     How it ended.
--   begin_unix_ns      BIGINT   unix_ns  Token record before the gap.
--   gap_ns             BIGINT   ns       The gap.
--   tokens_before      BIGINT   tokens   Tokens of the same choice before the gap; a record without a count is one.
--   others_streaming   BIGINT   count    Other requests whose tokens began before the gap ended and ended after it began.
--   others_served      BIGINT   count    Of these, those that got a token inside the gap, the tenth at either end left out.
-- Order:   gap_ns descending, request_id, begin_unix_ns.
-- Streams flagged buffered_stream are left out: something on the way held their
-- records back. Tokens of one step of the engine come a little apart: what comes
-- at the very ends of a gap is of the steps before and after it. The gaps are cut to $1 before events are read a second time, for
-- the time around each gap alone.
WITH longest AS (
    SELECT row_number() OVER (ORDER BY gap_ns DESC, run, request, index) AS id, *
    FROM (
        SELECT run, request, index, choice, gap_ns, at_unix_ns - gap_ns AS begins, at_unix_ns AS ends
        FROM events
        WHERE token_bearing AND gap_ns IS NOT NULL AND (run, request) NOT IN (
            SELECT (run, request) FROM requests WHERE list_contains(flags, 'buffered_stream'))
        ORDER BY gap_ns DESC, run, request, index
        LIMIT $1::BIGINT
    )
), served AS (
    SELECT l.id, count(DISTINCT e.request) AS n
    FROM longest AS l JOIN events AS e
        ON e.run = l.run AND e.request <> l.request AND e.at_unix_ns > l.begins + l.gap_ns // 10 AND e.at_unix_ns < l.ends - l.gap_ns // 10
    WHERE e.token_bearing
    GROUP BY l.id
), streaming AS (
    SELECT l.id, count(*) AS n
    FROM longest AS l JOIN requests AS r
        ON r.run = l.run AND r.request <> l.request AND r.first_token_unix_ns < l.ends AND r.last_token_unix_ns > l.begins
    GROUP BY l.id
), before AS (
    SELECT l.id, sum(coalesce(e.tokens, 1))::BIGINT AS tokens
    FROM longest AS l JOIN events AS e
        ON e.run = l.run AND e.request = l.request AND e.choice = l.choice AND e.index < l.index
    WHERE e.token_bearing
    GROUP BY l.id
)
SELECT r.request_id, r.client_request_id, r.model, r.status, l.begins AS begin_unix_ns, l.gap_ns,
    coalesce(before.tokens, 0) AS tokens_before, coalesce(streaming.n, 0) AS others_streaming, coalesce(served.n, 0) AS others_served
FROM longest AS l
JOIN requests AS r ON r.run = l.run AND r.request = l.request
LEFT JOIN served USING (id) LEFT JOIN streaming USING (id) LEFT JOIN before USING (id)
ORDER BY l.gap_ns DESC, r.request_id, l.begins
