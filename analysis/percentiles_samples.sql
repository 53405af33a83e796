-- Purpose: the samples of every latency metric, as weighted values per group and time bin.
-- Inputs:  requests, events; $1 columns to group by, joined by commas, or empty;
--          $2 resolution of inter-chunk latency in ns (1 keeps every value as it is).
-- Output:
--   metric      VARCHAR  text   ttft, ttft_server, ttfo, tpot, icl or e2e.
--   group_key   VARCHAR  text   Values of the grouping columns as a JSON array.
--   bin         BIGINT   count  Which of 20 equal time bins of the metric's own span, from 0.
--   value_ns    BIGINT   ns     The value.
--   count       BIGINT   count  How often it occurs.
-- Order:   none.
-- Only requests with status ok. TPOT and ICL leave out streams flagged
-- buffered_stream: their records came in one piece, so that gaps say nothing of
-- the server. A request counts at its start, a gap at its record's delivery.
WITH answered AS (
    SELECT
        run, request, request_start_unix_ns AS time_ns,
        ttft_ns, ttft_server_ns, ttfo_ns, tpot_ns, e2e_ns,
        list_contains(flags, 'buffered_stream') AS buffered,
        to_json(list_transform(
            CASE WHEN $1 = '' THEN [] ELSE string_split($1, ',') END,
            lambda k: map {
                'model': model, 'api': api, 'path': path, 'framing': framing,
                'http_version': http_version, 'http_status': http_status::VARCHAR,
                'stream': stream::VARCHAR, 'finish_reason': finish_reason, 'run': run,
                'n_source': n_source, 'tpot_quality': tpot_quality, 'concurrency': concurrency::VARCHAR
            }[k]
        ))::VARCHAR AS group_key
    FROM requests
    WHERE status = 'ok' AND request_start_unix_ns IS NOT NULL
), per_request AS (
    SELECT unnest([
        {metric: 'ttft', value_ns: ttft_ns},
        {metric: 'ttft_server', value_ns: ttft_server_ns},
        {metric: 'ttfo', value_ns: ttfo_ns},
        {metric: 'tpot', value_ns: CASE WHEN NOT buffered THEN tpot_ns END},
        {metric: 'e2e', value_ns: e2e_ns}
    ], recursive := true), group_key, time_ns
    FROM answered
), gaps AS (
    SELECT 'icl' AS metric, e.gap_ns // $2::BIGINT * $2::BIGINT AS value_ns, a.group_key, e.at_unix_ns AS time_ns
    FROM events AS e JOIN answered AS a ON e.run = a.run AND e.request = a.request
    WHERE e.gap_ns IS NOT NULL AND NOT a.buffered
), samples AS (
    SELECT metric, value_ns, group_key, time_ns FROM per_request WHERE value_ns IS NOT NULL
    UNION ALL
    SELECT metric, value_ns, group_key, time_ns FROM gaps
), spans AS (
    SELECT metric, group_key, min(time_ns) AS first, max(time_ns) - min(time_ns) + 1 AS span
    FROM samples
    GROUP BY metric, group_key
)
SELECT s.metric, s.group_key, least(19, floor((s.time_ns - spans.first)::DOUBLE / spans.span * 20))::BIGINT AS bin, s.value_ns, count(*) AS count
FROM samples AS s JOIN spans USING (metric, group_key)
GROUP BY ALL
