-- Purpose: requests, latencies, concurrency and tokens over time, one row per bin.
-- Inputs:  requests, events, runs; $1 start of the first bin, $2 width of a bin in ns, $3 number of bins.
-- Output:
--   bin            BIGINT  count     Number of the bin, from 0.
--   requests       BIGINT  count     Requests that started in it.
--   failed         BIGINT  count     Of these, those whose status is not ok.
--   ttft_n         BIGINT  count     Of those with status ok, those with a TTFT.
--   ttft_p50_ns    DOUBLE  ns        Their median TTFT, or NULL.
--   ttft_max_ns    BIGINT  ns        The longest of them, or NULL.
--   concurrency    DOUBLE  requests  Requests in flight, averaged over the bin.
--   output_tokens  DOUBLE  tokens    Output tokens delivered in it, of requests of any status.
-- Order:   bin.
-- A record counts for the tokens that it bears where the server tells, else for
-- an equal share of its request's output tokens, else for one. A request without
-- an end is in flight until its capture ends.
WITH bins AS (
    SELECT unnest(range($3::BIGINT)) AS bin
), starts AS (
    SELECT
        (request_start_unix_ns - $1::BIGINT) // $2::BIGINT AS bin,
        count(*) AS requests,
        count(*) FILTER (status <> 'ok') AS failed,
        count(ttft_ns) FILTER (status = 'ok') AS ttft_n,
        quantile_cont(ttft_ns, 0.5) FILTER (status = 'ok') AS ttft_p50_ns,
        max(ttft_ns) FILTER (status = 'ok') AS ttft_max_ns
    FROM requests
    WHERE request_start_unix_ns IS NOT NULL
    GROUP BY ALL
), flights AS (
    SELECT
        r.request_start_unix_ns - $1::BIGINT AS begins,
        greatest(r.request_start_unix_ns, coalesce(r.stream_end_unix_ns, runs.end_unix_ns, r.request_start_unix_ns)) - $1::BIGINT AS ends
    FROM requests AS r LEFT JOIN runs ON r.run = runs.run
    WHERE r.request_start_unix_ns IS NOT NULL
), shared AS (
    SELECT begins, ends, unnest(range(begins // $2::BIGINT, ends // $2::BIGINT + 1)) AS bin
    FROM flights
), flying AS (
    SELECT bin,
        sum(least(ends, (bin + 1) * $2::BIGINT) - greatest(begins, bin * $2::BIGINT)) / $2::DOUBLE AS concurrency
    FROM shared
    GROUP BY bin
), tokens AS (
    SELECT
        (e.at_unix_ns - $1::BIGINT) // $2::BIGINT AS bin,
        sum(coalesce(e.tokens::DOUBLE, r.output_tokens / nullif(r.token_records, 0), 1)) AS output_tokens
    FROM events AS e JOIN requests AS r ON e.run = r.run AND e.request = r.request
    WHERE e.token_bearing
    GROUP BY ALL
)
SELECT
    bins.bin,
    coalesce(starts.requests, 0) AS requests,
    coalesce(starts.failed, 0) AS failed,
    coalesce(starts.ttft_n, 0) AS ttft_n,
    starts.ttft_p50_ns, starts.ttft_max_ns,
    coalesce(flying.concurrency, 0) AS concurrency,
    coalesce(tokens.output_tokens, 0) AS output_tokens
FROM bins LEFT JOIN starts USING (bin) LEFT JOIN flying USING (bin) LEFT JOIN tokens USING (bin)
ORDER BY bins.bin
