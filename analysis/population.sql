-- Purpose: which requests there are, and how each group of them ended.
-- Inputs:  requests.
-- Output:
--   status       VARCHAR  text   How the requests ended.
--   requests     BIGINT   count  Requests that ended so.
--   streams      BIGINT   count  Those answered by a stream.
--   first_token  BIGINT   count  Those that have a time to first token.
--   silent       BIGINT   count  Streams without a single token.
--   buffered     BIGINT   count  Streams whose records came in one piece (flag buffered_stream).
-- Order:   requests descending, status.
SELECT
    status,
    count(*) AS requests,
    count(*) FILTER (stream) AS streams,
    count(ttft_ns) AS first_token,
    count(*) FILTER (stream AND first_token_unix_ns IS NULL) AS silent,
    count(*) FILTER (list_contains(flags, 'buffered_stream')) AS buffered
FROM requests
GROUP BY status
ORDER BY requests DESC, status
