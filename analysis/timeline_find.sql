-- Purpose: the requests that an id names, or nearly names.
-- Inputs:  requests; $1 the id; $2 how many candidates at most.
-- Output:
--   request_id             VARCHAR  text     The request.
--   client_request_id      VARCHAR  text     Its x-request-id, or NULL.
--   exact                  BOOLEAN  bool     Whether either is the id.
--   model                  VARCHAR  text     Model that answered, or NULL.
--   path                   VARCHAR  text     Path of the request, or NULL.
--   status                 VARCHAR  text     How it ended.
--   status_reason          VARCHAR  text     Why, or NULL.
--   http_status            INTEGER  count    Status code, or NULL.
--   concurrency            INTEGER  count    Requests in flight at its start, itself included.
--   prompt_tokens          BIGINT   tokens   Prompt tokens, or NULL.
--   output_tokens          BIGINT   tokens   Output tokens, or NULL.
--   finish_reason          VARCHAR  text     Finish reason, or NULL.
--   flags                  VARCHAR[] text    Flags.
--   ttft_ns                BIGINT   ns       Time to first token, or NULL.
--   tpot_ns                BIGINT   ns       Time per output token, or NULL.
--   e2e_ns                 BIGINT   ns       End to end, or NULL.
--   request_start_unix_ns  BIGINT   unix_ns  Its start, or NULL.
-- Order:   exact first, then request_start_unix_ns, request_id.
SELECT
    request_id, client_request_id,
    coalesce(request_id = $1 OR client_request_id = $1, false) AS exact,
    model, path, status, status_reason, http_status, concurrency, prompt_tokens, output_tokens,
    finish_reason, flags, ttft_ns, tpot_ns, e2e_ns, request_start_unix_ns
FROM requests
WHERE request_id = $1 OR client_request_id = $1
    OR starts_with(request_id, $1) OR starts_with(client_request_id, $1)
    OR request::VARCHAR = $1
ORDER BY exact DESC, request_start_unix_ns, request_id
LIMIT $2::BIGINT
