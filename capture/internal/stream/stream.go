// Package stream is the meeting point of the sources and the protocols: ordered
// runs of bytes of one connection, each with the time it was delivered, and the
// holes that the capture left.
//
// Below it a file, an interface or a proxy; above it HTTP and the APIs. What is
// above has no clock, no goroutine and no socket, and gives the same records for
// any cut of the same bytes.
package stream

import (
	"net/netip"

	"tokentrace/schema"
)

// Dir is a direction of a connection.
type Dir uint8

// The two directions.
const (
	ToServer Dir = iota
	ToClient
)

// Other returns the opposite direction.
func (d Dir) Other() Dir { return 1 - d }

// Tuple names the two ends of a connection.
type Tuple struct {
	Client, Server netip.AddrPort
	// Guessed says that the handshake was not seen, so that the two may be
	// swapped.
	Guessed bool
}

// Chunk is a run of bytes of one direction that became readable at one instant.
// It never spans packets.
//
// Times are nanoseconds since the Unix epoch.
type Chunk struct {
	Dir Dir
	// Gap is the number of bytes that the capture lost just before Data.
	Gap int64
	// Data is valid only during the call. It is empty where a gap ends the
	// direction.
	Data []byte
	// At is the delivery time: when the bytes became readable in order at the
	// capture point. It is the running maximum of first-seen times up to here.
	At int64
	// Seen is when the packet that holds Data was first seen.
	Seen int64
	// Segment is the ordinal of the packet among those of its direction that
	// brought new bytes.
	Segment int32
}

// CloseReason says why no more bytes of a direction come.
type CloseReason uint8

// The ways a direction ends.
const (
	FIN        CloseReason = iota // its sender ended it in order
	RST                           // its sender reset the connection
	PeerRST                       // its receiver reset the connection
	Idle                          // nothing was seen for long
	Reuse                         // its ports were used again
	CaptureEnd                    // the capture ended first
)

// Facts are what the packets tell about a connection.
type Facts struct {
	Tuple         Tuple
	First, Last   int64 // unix ns
	SYN           bool
	Close         string // as in schema.Connection
	ClosedBy      string
	RTT           schema.Opt[int64]
	Packets       int64
	Delivered     [2]int64 // bytes, by direction
	Retransmitted int64    // segments
	OutOfOrder    int64    // segments
	Lost          int64    // bytes
	ZeroWindow    int64    // ns during which the client's window was closed
}

// Handler takes the bytes of one connection. Its methods are never called
// concurrently. Close is called once for each direction, and last.
type Handler interface {
	Data(c *Chunk)
	Close(d Dir, at int64, why CloseReason)
}

// Open makes the handler of a new connection.
type Open func(t Tuple, at int64) Handler
