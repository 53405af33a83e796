-- Purpose: how long each request waited for its first token, or waited in vain.
-- Inputs:  requests, runs; $1 columns to group by, joined by commas, or empty.
-- Output:
--   group_key  VARCHAR  text  Values of the grouping columns as a JSON array.
--   wait_ns    BIGINT   ns    Time to the first token, or to the end of the observation.
--   censored   BOOLEAN  bool  Whether the observation ended without a first token.
--   ok         BOOLEAN  bool  Whether the request ended ok.
-- Order:   group_key, wait_ns.
-- A request that was cancelled, reset, truncated, cut by the capture's end or by
-- lost bytes before its first token is censored; one that the server answered
-- with an error, whose start was not seen, that asked for no stream, or that spoke
-- an API that is not read, tells nothing of the wait.
WITH waits AS (
    SELECT
        to_json(list_transform(
            CASE WHEN $1 = '' THEN [] ELSE string_split($1, ',') END,
            lambda k: map {
                'model': model, 'api': api, 'path': path, 'framing': framing,
                'http_version': http_version, 'http_status': http_status::VARCHAR,
                'stream': stream::VARCHAR, 'finish_reason': finish_reason, 'run': r.run,
                'n_source': n_source, 'tpot_quality': tpot_quality, 'concurrency': concurrency::VARCHAR
            }[k]
        ))::VARCHAR AS group_key,
        ttft_ns,
        coalesce(stream_end_unix_ns, runs.end_unix_ns) - request_start_unix_ns AS watched_ns,
        status,
        api <> 'unknown' AND stream_requested IS NOT false AS streamed
    FROM requests AS r LEFT JOIN runs ON r.run = runs.run
    WHERE request_start_unix_ns IS NOT NULL
)
SELECT group_key, coalesce(ttft_ns, watched_ns) AS wait_ns, ttft_ns IS NULL AS censored, status = 'ok' AS ok
FROM waits
WHERE ttft_ns IS NOT NULL
    OR (streamed AND watched_ns > 0 AND status IN ('cancelled', 'reset', 'truncated', 'censored_end', 'gap'))
ORDER BY group_key, wait_ns
