-- Purpose: the records of one request.
-- Inputs:  events, requests; $1 request_id.
-- Output:
--   index         INTEGER    count    Position of the record in its response.
--   at_unix_ns    BIGINT     unix_ns  Delivery of the byte that completed it.
--   since_ns      BIGINT     ns       Since the request's start, or NULL where that was not seen.
--   gap_ns        BIGINT     ns       To the previous token record of the same choice, or NULL.
--   waited_ns     BIGINT     ns       How long its last byte waited for bytes before it.
--   kinds         VARCHAR[]  text     What it is.
--   token_bearing BOOLEAN    bool     Whether it bears text.
--   choice        INTEGER    count    The choice it belongs to.
--   tokens        INTEGER    tokens   Tokens it bears, or NULL.
--   text_bytes    INTEGER    bytes    Bytes of its text.
--   segment       INTEGER    count    Segment of the response body, from 0, that holds its last byte.
-- Order:   index.
SELECT e.index, e.at_unix_ns, e.at_unix_ns - r.request_start_unix_ns AS since_ns, e.gap_ns,
    e.seen_lead_ns AS waited_ns, e.kinds, e.token_bearing, e.choice, e.tokens, e.text_bytes, e.segment
FROM events AS e JOIN requests AS r ON e.run = r.run AND e.request = r.request
WHERE r.request_id = $1
ORDER BY e.index
