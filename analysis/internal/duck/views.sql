-- Purpose: the views that people type, over the columns that lie on disk.
-- Inputs:  disk.requests, disk.events, disk.connections.
-- Output:  views requests, events, connections: every column on disk, and
--   request_id            VARCHAR    text     Run and number of the request, joined by a dot (requests, events).
--   connection_id         VARCHAR    text     Run, ".c" and number of the connection (requests, connections).
--   flags                 VARCHAR[]  text     Flags as a list, empty where there is none (requests).
--   seen_unix_ns          BIGINT     unix_ns  First sight of the completing byte: at - seen_lead (events).
--   first_byte_unix_ns    BIGINT     unix_ns  Delivery of the record's first byte: at - first_byte_lead (events).
--   segment               INTEGER    count    Segment of the response body, from 0, that completed it: index + segment_ahead (events).
--   kinds                 VARCHAR[]  text     Kinds as a list (events).
-- Order:   none.

CREATE VIEW requests AS
SELECT
    run || '.' || request AS request_id,
    run || '.c' || connection AS connection_id,
    * REPLACE (CASE WHEN flags = '' THEN [] ELSE string_split(flags, ' ') END::VARCHAR[] AS flags)
FROM disk.requests;

CREATE VIEW events AS
SELECT
    run || '.' || request AS request_id,
    * REPLACE (CASE WHEN kinds = '' THEN [] ELSE string_split(kinds, '+') END::VARCHAR[] AS kinds),
    at_unix_ns - seen_lead_ns AS seen_unix_ns,
    at_unix_ns - first_byte_lead_ns AS first_byte_unix_ns,
    index + segment_ahead AS segment
FROM disk.events;

CREATE VIEW connections AS
SELECT
    run || '.c' || connection AS connection_id,
    *
FROM disk.connections;
