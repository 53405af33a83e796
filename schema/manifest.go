package schema

// Manifest is manifest.json of a trace: what it is, where it comes from and
// which parts it is made of. Parts that the manifest does not list do not exist
// for a reader.
type Manifest struct {
	Format  int    `json:"format"`          // FormatVersion of the writer
	Tool    string `json:"tool"`            // program and version that wrote the trace
	Label   string `json:"label,omitempty"` // name that its maker gave it
	Created int64  `json:"created_unix_ns"` // when the trace was begun
	Runs    []Run  `json:"runs"`            // captures in it, in the order they were added
	Parts   []Part `json:"parts"`           // sealed Parquet files
	Ledger  Ledger `json:"ledger"`          // sum over the runs
}

// Run is one capture: one call of a capture command.
type Run struct {
	ID           string   `json:"id"`
	Source       string   `json:"source"`             // pcap, live, proxy
	Inputs       []string `json:"inputs,omitempty"`   // names of the files read, or the interface
	CapturePoint string   `json:"capture_point"`      // client, server, between or unknown
	Clock        string   `json:"clock"`              // what the times are read from
	Precision    int64    `json:"clock_precision_ns"` // resolution of the coarsest time stamp, in ns
	Start        int64    `json:"start_unix_ns"`      // first packet
	End          int64    `json:"end_unix_ns"`        // last packet
	Host         string   `json:"host,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
	Ledger       Ledger   `json:"ledger"`
}

// Part is one sealed Parquet file of a trace.
type Part struct {
	Table string `json:"table"`
	Path  string `json:"path"` // relative to the trace, with forward slashes
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Start int64  `json:"start_unix_ns"` // smallest sort key
	End   int64  `json:"end_unix_ns"`   // largest sort key
}
