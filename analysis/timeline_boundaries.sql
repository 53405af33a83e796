-- Purpose: the boundaries of one request in the order in which they came.
-- Inputs:  requests; $1 request_id.
-- Output:
--   name        VARCHAR  text     The boundary.
--   at_unix_ns  BIGINT   unix_ns  When it was.
--   since_ns    BIGINT   ns       Since the request's start, or NULL where that was not seen.
-- Order:   at_unix_ns, then as listed.
WITH boundaries AS (
    SELECT request_start_unix_ns AS t0, unnest([
        {name: 'request_start', rank: 1, at_unix_ns: request_start_unix_ns},
        {name: 'request_end', rank: 2, at_unix_ns: request_end_unix_ns},
        {name: 'response_head', rank: 3, at_unix_ns: response_head_unix_ns},
        {name: 'first_body_byte', rank: 4, at_unix_ns: first_body_byte_unix_ns},
        {name: 'first_comment', rank: 5, at_unix_ns: first_comment_unix_ns},
        {name: 'first_event', rank: 6, at_unix_ns: first_event_unix_ns},
        {name: 'first_hidden', rank: 7, at_unix_ns: first_hidden_unix_ns},
        {name: 'first_token', rank: 8, at_unix_ns: first_token_unix_ns},
        {name: 'first_reasoning', rank: 9, at_unix_ns: first_reasoning_unix_ns},
        {name: 'first_output', rank: 10, at_unix_ns: first_output_unix_ns},
        {name: 'second_token', rank: 11, at_unix_ns: second_token_unix_ns},
        {name: 'last_token', rank: 12, at_unix_ns: last_token_unix_ns},
        {name: 'finish', rank: 13, at_unix_ns: finish_unix_ns},
        {name: 'usage', rank: 14, at_unix_ns: usage_unix_ns},
        {name: 'done', rank: 15, at_unix_ns: done_unix_ns},
        {name: 'last_record', rank: 16, at_unix_ns: last_record_unix_ns},
        {name: 'stream_end', rank: 17, at_unix_ns: stream_end_unix_ns}
    ], recursive := true)
    FROM requests
    WHERE request_id = $1
)
SELECT name, at_unix_ns, at_unix_ns - t0 AS since_ns
FROM boundaries
WHERE at_unix_ns IS NOT NULL
ORDER BY at_unix_ns, rank
