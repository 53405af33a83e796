-- Purpose: type-7 quantiles of the samples, with what their effective sample size needs.
-- Inputs:  samples (percentiles_samples.sql); $1 quantiles wanted, a JSON array.
-- Output:
--   metric      VARCHAR   text   The metric.
--   group_key   VARCHAR   text   Values of the grouping columns as a JSON array.
--   p           DOUBLE    ratio  The quantile's level.
--   n           BIGINT    count  Samples.
--   min_ns      BIGINT    ns     Smallest.
--   max_ns      BIGINT    ns     Largest.
--   mean_ns     DOUBLE    ns     Mean.
--   below_half_ms_ratio DOUBLE ratio Share of samples below 0.5 ms.
--   value_ns    DOUBLE    ns     The quantile.
--   bin_counts  BIGINT[]  count  Samples per time bin.
--   bin_exceed  BIGINT[]  count  Samples above the quantile per time bin.
-- Order:   group_key, metric, p.
WITH sums AS (
    SELECT metric, group_key, value_ns, sum(count) AS count FROM samples GROUP BY ALL
), cumulative AS (
    SELECT metric, group_key, value_ns,
        (sum(count) OVER (PARTITION BY metric, group_key ORDER BY value_ns))::BIGINT AS upto
    FROM sums
), totals AS (
    SELECT metric, group_key, sum(count)::BIGINT AS n, min(value_ns) AS min_ns, max(value_ns) AS max_ns,
        sum(value_ns::DOUBLE * count) / sum(count) AS mean_ns,
        coalesce(sum(count) FILTER (value_ns < 500000), 0) / sum(count) AS below_half_ms_ratio
    FROM sums
    GROUP BY ALL
), wanted AS (
    SELECT t.*, p, floor(p * (n - 1))::BIGINT AS i, p * (n - 1) - floor(p * (n - 1)) AS part
    FROM totals AS t, (SELECT unnest(from_json($1::JSON, '["DOUBLE"]')) AS p)
), lower AS (
    SELECT w.*, c.value_ns AS below
    FROM wanted AS w ASOF JOIN cumulative AS c
        ON w.metric = c.metric AND w.group_key = c.group_key AND w.i < c.upto
), quantiles AS (
    SELECT l.*, l.below + l.part * (c.value_ns - l.below) AS value
    FROM (SELECT *, least(i + 1, n - 1) AS next FROM lower) AS l ASOF JOIN cumulative AS c
        ON l.metric = c.metric AND l.group_key = c.group_key AND l.next < c.upto
), bins AS (
    SELECT q.metric, q.group_key, q.p, s.bin,
        sum(s.count)::BIGINT AS count,
        coalesce(sum(s.count) FILTER (s.value_ns > q.value), 0)::BIGINT AS exceed
    FROM quantiles AS q JOIN samples AS s ON q.metric = s.metric AND q.group_key = s.group_key
    GROUP BY ALL
), maps AS (
    SELECT metric, group_key, p, map(list(bin), list(count)) AS counts, map(list(bin), list(exceed)) AS exceeds
    FROM bins
    GROUP BY ALL
)
SELECT q.metric, q.group_key, q.p, q.n, q.min_ns, q.max_ns, q.mean_ns, q.below_half_ms_ratio, q.value AS value_ns,
    list_transform(range(20), lambda b: coalesce(m.counts[b], 0)) AS bin_counts,
    list_transform(range(20), lambda b: coalesce(m.exceeds[b], 0)) AS bin_exceed
FROM quantiles AS q JOIN maps AS m ON q.metric = m.metric AND q.group_key = m.group_key AND q.p = m.p
ORDER BY q.group_key, q.metric, q.p
