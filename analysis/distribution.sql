-- Purpose: the distribution of a latency as points of its ECDF, thinned to its shape.
-- Inputs:  requests; $1 metric: ttft or tpot; $2 largest number of points of the body (the top 50 values come on top).
-- Output:
--   model     VARCHAR  text   Model that answered, or NULL.
--   n         BIGINT   count  Values of the model.
--   rank      BIGINT   count  Rank of the value among them, from 1.
--   value_ns  BIGINT   ns     The value.
-- Order:   n descending, model, rank.
WITH samples AS (
    SELECT model, CASE $1 WHEN 'ttft' THEN ttft_ns WHEN 'tpot' THEN tpot_ns END AS value_ns
    FROM requests
    WHERE status = 'ok' AND ($1 <> 'tpot' OR NOT list_contains(flags, 'buffered_stream'))
), ranked AS (
    SELECT model, value_ns,
        row_number() OVER (PARTITION BY model ORDER BY value_ns) AS rank,
        count(*) OVER (PARTITION BY model) AS n
    FROM samples
    WHERE value_ns IS NOT NULL
)
SELECT model, n, rank, value_ns
FROM ranked
WHERE rank = 1 OR rank > n - 50 OR rank % greatest(1, n // $2::BIGINT) = 0
ORDER BY n DESC, model, rank
