-- Purpose: the order statistics that bound quantiles.
-- Inputs:  samples (percentiles_samples.sql); $1 what is wanted, a JSON array of
--          objects {metric, group_key, p, lo, hi} with ranks from 1.
-- Output:
--   metric     VARCHAR  text   The metric.
--   group_key  VARCHAR  text   Values of the grouping columns as a JSON array.
--   p          DOUBLE   ratio  The quantile's level.
--   lo_ns      BIGINT   ns     The value of rank lo.
--   hi_ns      BIGINT   ns     The value of rank hi.
-- Order:   group_key, metric, p.
WITH sums AS (
    SELECT metric, group_key, value_ns, sum(count) AS count FROM samples GROUP BY ALL
), cumulative AS (
    SELECT metric, group_key, value_ns,
        (sum(count) OVER (PARTITION BY metric, group_key ORDER BY value_ns))::BIGINT AS upto
    FROM sums
), wanted AS (
    SELECT unnest(from_json($1::JSON,
        '[{"metric": "VARCHAR", "group_key": "VARCHAR", "p": "DOUBLE", "lo": "BIGINT", "hi": "BIGINT"}]'),
        recursive := true)
), lower AS (
    SELECT w.metric, w.group_key, w.p, w.hi, c.value_ns AS lo_ns
    FROM wanted AS w ASOF JOIN cumulative AS c
        ON w.metric = c.metric AND w.group_key = c.group_key AND w.lo <= c.upto
)
SELECT l.metric, l.group_key, l.p, l.lo_ns, c.value_ns AS hi_ns
FROM lower AS l ASOF JOIN cumulative AS c
    ON l.metric = c.metric AND l.group_key = c.group_key AND l.hi <= c.upto
ORDER BY l.group_key, l.metric, l.p
