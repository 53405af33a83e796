-- Purpose: time to first token against the tokens of the prompt, one row per request.
-- Inputs:  requests, connections, runs.
-- Output:
--   model          VARCHAR  text     Model that answered, or NULL.
--   start_unix_ns  BIGINT   unix_ns  Start of the request.
--   ttft_ns        BIGINT   ns       Time to first token.
--   prompt_tokens  BIGINT   tokens   Prompt tokens, cached ones included.
--   cached_tokens  BIGINT   tokens   Of these from the server's prefix cache, or NULL where it did not say.
--   unqueued       BOOLEAN  bool     Whether no request to the same server was waiting for its first token when this one came.
-- Order:   start_unix_ns, run, request.
-- A request that never had a first token counts as waiting until its stream
-- ended, or until the capture did. Rows are those with status ok, a first token
-- and known prompt tokens; all requests count as rivals.
WITH waits AS (
    SELECT
        r.run, r.request, r.model, r.status, r.ttft_ns, r.prompt_tokens, r.cached_tokens,
        r.request_start_unix_ns AS start_unix_ns,
        max(coalesce(r.first_token_unix_ns, r.stream_end_unix_ns, runs.end_unix_ns)) OVER (
            PARTITION BY r.run, c.server_addr, c.server_port
            ORDER BY r.request_start_unix_ns, r.request
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS busy_until
    FROM requests AS r
    LEFT JOIN connections AS c ON r.run = c.run AND r.connection = c.connection
    LEFT JOIN runs ON r.run = runs.run
    WHERE r.request_start_unix_ns IS NOT NULL
)
SELECT model, start_unix_ns, ttft_ns, prompt_tokens, cached_tokens,
    coalesce(busy_until <= start_unix_ns, true) AS unqueued
FROM waits
WHERE status = 'ok' AND ttft_ns > 0 AND prompt_tokens IS NOT NULL
ORDER BY start_unix_ns, run, request
