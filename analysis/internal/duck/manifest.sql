-- Purpose: what the manifest says, as tables: trace_info, runs and ledger.
-- Inputs:  $1 the manifest as JSON. Statements are parted by a line with a semicolon alone.
-- Output:  trace_info, one row:
--   format                BIGINT     count    Format version of the writer.
--   tool                  VARCHAR    text     Program and version that wrote the trace.
--   label                 VARCHAR    text     Name that its maker gave it, or NULL.
--   created_unix_ns       BIGINT     unix_ns  When the trace was begun, on the clock of its maker.
--   runs                  BIGINT     count    Captures in it.
--   sources               VARCHAR[]  text     pcap, live, proxy.
--   inputs                VARCHAR[]  text     Names of the files read, or interfaces.
--   capture_points        VARCHAR[]  text     client, server, between or unknown.
--   clocks                VARCHAR[]  text     What the times are read from.
--   clock_precision_ns    BIGINT     ns       Resolution of the coarsest time stamp.
--   start_unix_ns         BIGINT     unix_ns  First packet of all runs.
--   end_unix_ns           BIGINT     unix_ns  Last packet of all runs.
--   requests              BIGINT     count    Rows of requests.
--   events                BIGINT     count    Rows of events.
--   connections           BIGINT     count    Rows of connections.
--   bytes                 BIGINT     bytes    Size of the sealed parts.
--   warnings              VARCHAR[]  text     What the captures warned of.
-- Order:   none.

CREATE TABLE runs AS
SELECT
    r.id AS run, r.source, r.inputs, r.capture_point, r.clock, r.clock_precision_ns,
    r.start_unix_ns, r.end_unix_ns, r.host, r.warnings
FROM (
    SELECT unnest(from_json($1::JSON -> 'runs', '[{"id": "VARCHAR", "source": "VARCHAR",
        "inputs": ["VARCHAR"], "capture_point": "VARCHAR", "clock": "VARCHAR",
        "clock_precision_ns": "BIGINT", "start_unix_ns": "BIGINT", "end_unix_ns": "BIGINT",
        "host": "VARCHAR", "warnings": ["VARCHAR"]}]')) AS r
)
;
CREATE TABLE ledger AS
SELECT c.name, c.severity, c.count, c.doc, c.part_of
FROM (
    SELECT unnest(from_json($1::JSON -> 'ledger', '[{"name": "VARCHAR", "severity": "VARCHAR",
        "count": "BIGINT", "doc": "VARCHAR", "part_of": "VARCHAR"}]')) AS c
)
;
CREATE TABLE trace_info AS
WITH parts AS (
    SELECT unnest(from_json($1::JSON -> 'parts', '[{"table": "VARCHAR", "rows": "BIGINT", "bytes": "BIGINT"}]')) AS p
), sizes AS (
    SELECT
        coalesce(sum(p.rows) FILTER (p."table" = 'requests'), 0)::BIGINT AS requests,
        coalesce(sum(p.rows) FILTER (p."table" = 'events'), 0)::BIGINT AS events,
        coalesce(sum(p.rows) FILTER (p."table" = 'connections'), 0)::BIGINT AS connections,
        coalesce(sum(p.bytes), 0)::BIGINT AS bytes
    FROM parts
), captures AS (
    SELECT
        count(*) AS runs,
        coalesce(list(DISTINCT source ORDER BY source), []) AS sources,
        coalesce(flatten(list(inputs) FILTER (inputs IS NOT NULL)), []) AS inputs,
        coalesce(list(DISTINCT capture_point ORDER BY capture_point), []) AS capture_points,
        coalesce(list(DISTINCT clock ORDER BY clock), []) AS clocks,
        max(clock_precision_ns) AS clock_precision_ns,
        min(start_unix_ns) FILTER (start_unix_ns > 0) AS start_unix_ns,
        max(end_unix_ns) FILTER (end_unix_ns > 0) AS end_unix_ns,
        coalesce(flatten(list(warnings) FILTER (warnings IS NOT NULL)), []) AS warnings
    FROM runs
)
SELECT
    ($1::JSON ->> 'format')::BIGINT AS format,
    $1::JSON ->> 'tool' AS tool,
    $1::JSON ->> 'label' AS label,
    ($1::JSON ->> 'created_unix_ns')::BIGINT AS created_unix_ns,
    captures.runs, captures.sources, captures.inputs, captures.capture_points, captures.clocks,
    captures.clock_precision_ns, captures.start_unix_ns, captures.end_unix_ns,
    sizes.requests, sizes.events, sizes.connections, sizes.bytes, captures.warnings
FROM captures, sizes
