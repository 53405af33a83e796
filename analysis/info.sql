-- Purpose: what the trace says of itself, and the span of its requests.
-- Inputs:  trace_info, requests.
-- Output:
--   tool                   VARCHAR    text     Program and version that wrote the trace.
--   label                  VARCHAR    text     Name that its maker gave it, or NULL.
--   runs                   BIGINT     count    Captures in it.
--   sources                VARCHAR[]  text     pcap, live, proxy.
--   inputs                 VARCHAR[]  text     Names of the files read, or interfaces.
--   capture_points         VARCHAR[]  text     client, server, between or unknown.
--   clocks                 VARCHAR[]  text     What the times are read from.
--   clock_precision_ns     BIGINT     ns       Resolution of the coarsest time stamp, or NULL.
--   start_unix_ns          BIGINT     unix_ns  First packet, or NULL.
--   end_unix_ns            BIGINT     unix_ns  Last packet, or NULL.
--   requests               BIGINT     count    Requests.
--   events                 BIGINT     count    Records of response streams.
--   connections            BIGINT     count    TCP connections.
--   bytes                  BIGINT     bytes    Size of the trace's parts.
--   warnings               VARCHAR[]  text     What the captures warned of.
--   models                 VARCHAR[]  text     Models that answered, most asked first.
--   output_tokens          BIGINT     tokens   Output tokens of all requests, or NULL where none is known.
--   counted_requests       BIGINT     count    Requests whose output tokens are known.
--   retransmitted_segments BIGINT     count    Over all connections.
--   lost_bytes             BIGINT     bytes    Over all connections.
-- Order:   one row.
SELECT
    i.tool, i.label, i.runs, i.sources, i.inputs, i.capture_points, i.clocks, i.clock_precision_ns,
    i.start_unix_ns, i.end_unix_ns, i.requests, i.events, i.connections, i.bytes, i.warnings,
    (SELECT coalesce(list(model ORDER BY n DESC, model), [])
     FROM (SELECT model, count(*) AS n FROM requests WHERE model IS NOT NULL GROUP BY model)) AS models,
    (SELECT sum(output_tokens)::BIGINT FROM requests) AS output_tokens,
    (SELECT count(output_tokens) FROM requests) AS counted_requests,
    (SELECT coalesce(sum(retransmitted_segments), 0)::BIGINT FROM connections) AS retransmitted_segments,
    (SELECT coalesce(sum(lost_bytes), 0)::BIGINT FROM connections) AS lost_bytes
FROM trace_info AS i
