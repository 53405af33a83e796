-- Purpose: which requests did not end well: endpoint, status and reason.
-- Inputs:  requests; $1 how many rows at most.
-- Output:
--   path           VARCHAR  text   Path of the requests, or NULL.
--   status         VARCHAR  text   How they ended.
--   status_reason  VARCHAR  text   Why, or NULL.
--   http_status    INTEGER  count  Status code, or NULL.
--   requests       BIGINT   count  How many.
-- Order:   requests descending, path, status, status_reason, http_status.
SELECT path, status, status_reason, http_status, count(*) AS requests
FROM requests
WHERE status <> 'ok'
GROUP BY ALL
ORDER BY requests DESC, path, status, status_reason, http_status
LIMIT $1::BIGINT
