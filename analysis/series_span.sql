-- Purpose: the span of time that requests cover.
-- Inputs:  requests.
-- Output:
--   first_unix_ns  BIGINT  unix_ns  Start of the first request, or NULL.
--   last_unix_ns   BIGINT  unix_ns  Latest instant of any request, or NULL.
-- Order:   one row.
SELECT
    min(request_start_unix_ns) AS first_unix_ns,
    max(greatest(request_start_unix_ns, stream_end_unix_ns, last_record_unix_ns)) AS last_unix_ns
FROM requests
WHERE request_start_unix_ns IS NOT NULL
