-- Purpose: the requests that waited longest for their first token, with their boundaries.
-- Inputs:  requests; $1 how many.
-- Output:
--   request_id             VARCHAR  text     The request.
--   client_request_id      VARCHAR  text     Its x-request-id, or NULL.
--   model                  VARCHAR  text     Model that answered, or NULL.
--   status                 VARCHAR  text     How it ended.
--   prompt_tokens          BIGINT   tokens   Prompt tokens, or NULL.
--   output_tokens          BIGINT   tokens   Output tokens, or NULL.
--   concurrency            INTEGER  count    Requests in flight at its start, itself included.
--   request_start_unix_ns  BIGINT   unix_ns  Its start.
--   upload_ns              BIGINT   ns       Request end - start, or NULL.
--   head_ns                BIGINT   ns       Response head - start, or NULL.
--   ttft_ns                BIGINT   ns       First token - start.
--   last_token_ns          BIGINT   ns       Last token - start.
--   end_ns                 BIGINT   ns       Stream end - start, or NULL.
--   ticks_ns               BIGINT[] ns       Token records - start, thinned to about 200.
-- Order:   ttft_ns descending, request_id.
WITH slow AS (
    SELECT *
    FROM requests
    WHERE ttft_ns IS NOT NULL
    ORDER BY ttft_ns DESC, request_id
    LIMIT $1::BIGINT
), numbered AS (
    SELECT s.request_id, e.at_unix_ns - s.request_start_unix_ns AS tick_ns,
        row_number() OVER (PARTITION BY s.request_id ORDER BY e.index) AS k,
        count(*) OVER (PARTITION BY s.request_id) AS n
    FROM events AS e JOIN slow AS s ON e.run = s.run AND e.request = s.request
    WHERE e.token_bearing
), ticks AS (
    SELECT request_id, list(tick_ns ORDER BY k) AS ticks_ns
    FROM numbered
    WHERE k = 1 OR k = n OR k % greatest(1, n // 200) = 0
    GROUP BY request_id
)
SELECT
    s.request_id, s.client_request_id, s.model, s.status, s.prompt_tokens, s.output_tokens, s.concurrency,
    s.request_start_unix_ns, s.upload_ns,
    s.response_head_unix_ns - s.request_start_unix_ns AS head_ns,
    s.ttft_ns,
    s.last_token_unix_ns - s.request_start_unix_ns AS last_token_ns,
    s.stream_end_unix_ns - s.request_start_unix_ns AS end_ns,
    coalesce(t.ticks_ns, []) AS ticks_ns
FROM slow AS s LEFT JOIN ticks AS t USING (request_id)
ORDER BY s.ttft_ns DESC, s.request_id
