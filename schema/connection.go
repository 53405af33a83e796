package schema

// Connection is one row of the connections table: one TCP connection.
type Connection struct {
	Run        string `col:"run" doc:"Capture run that wrote the row."`
	Connection int64  `col:"connection" doc:"Number of the connection within its run. The view's connection_id is run, a dot, c and this number."`

	ClientAddr string `col:"client_addr" doc:"Address of the side that sent the requests."`
	ClientPort int32  `col:"client_port" doc:"Its TCP port."`
	ServerAddr string `col:"server_addr" doc:"Address of the side that answered."`
	ServerPort int32  `col:"server_port" doc:"Its TCP port."`

	Protocol string     `col:"protocol" doc:"What was recognised by its first bytes: http1, http2, tls, other, or none where no payload was seen."`
	TLS      bool       `col:"tls" doc:"Whether the connection carries TLS."`
	First    int64      `col:"first_unix_ns" unit:"unix_ns" doc:"First packet."`
	Last     int64      `col:"last_unix_ns" unit:"unix_ns" doc:"Last packet."`
	SYN      bool       `col:"syn_seen" doc:"Whether the capture saw the connection begin."`
	Close    string     `col:"close" doc:"How it ended: fin, rst, idle, reuse (its ports were used again) or capture_end."`
	ClosedBy string     `col:"closed_by" doc:"Side whose FIN or RST came first: client, server, or none."`
	RTT      Opt[int64] `col:"rtt_ns" unit:"ns" doc:"Handshake round trip, SYN to the ACK that completes it. NULL where the handshake was not seen whole or was repeated."`

	Packets       int64 `col:"packets" unit:"count" doc:"Packets of both directions."`
	Requests      int64 `col:"requests" unit:"count" doc:"HTTP requests seen on it."`
	ToServerBytes int64 `col:"to_server_bytes" unit:"bytes" doc:"Payload delivered in order to the server."`
	ToClientBytes int64 `col:"to_client_bytes" unit:"bytes" doc:"Payload delivered in order to the client."`

	Retransmitted int64 `col:"retransmitted_segments" unit:"count" doc:"Segments that held only bytes seen before."`
	OutOfOrder    int64 `col:"out_of_order_segments" unit:"count" doc:"Segments that arrived ahead of bytes before them."`
	LostBytes     int64 `col:"lost_bytes" unit:"bytes" doc:"Bytes that the connection carried and the capture does not hold."`
	ZeroWindow    int64 `col:"zero_window_ns" unit:"ns" doc:"Time during which the client's receive window was closed."`
}

// SortKey is the time of the connection's first packet.
func (c *Connection) SortKey() int64 { return c.First }
