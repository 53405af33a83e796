package exchange

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"tokentrace/capture/internal/stream"
	"tokentrace/schema"
)

// sseCase is a case of testdata/sse: see the README there.
type sseCase struct {
	ID       string
	About    string
	Segments []struct {
		AtMS   int64 `json:"at_ms"`
		Text   string
		Base64 string
	}
	Expect struct {
		TTFT         int64  `json:"ttft_ms"`
		TTFO         *int64 `json:"ttfo_ms"`
		LastToken    int64  `json:"last_token_ms"`
		TokenRecords int64  `json:"token_records"`
		N            *int64
		OK           bool
	}
}

func readCases(t *testing.T) []sseCase {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/sse/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []sseCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// steps plays a case as the answer to a request at 0 ms, the body framed by frame.
func (c *sseCase) steps(t *testing.T, path, head string, frame func(string) string, end []step) []step {
	t.Helper()
	steps := []step{
		toServer(0, "POST "+path+" HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"),
		toClient(1, head),
	}
	for _, s := range c.Segments {
		text := s.Text
		if s.Base64 != "" {
			raw, err := base64.StdEncoding.DecodeString(s.Base64)
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		steps = append(steps, toClient(s.AtMS, frame(text)))
	}
	return append(steps, end...)
}

func (c *sseCase) check(t *testing.T, got *rows) {
	t.Helper()
	if len(got.requests) != 1 {
		t.Fatalf("%d requests", len(got.requests))
	}
	r, want := got.requests[0], c.Expect
	if r.TTFT != schema.Some(want.TTFT*ms) || r.LastToken != schema.Some(want.LastToken*ms) ||
		r.TokenRecords != want.TokenRecords || (r.Status == schema.StatusOK) != want.OK {
		t.Errorf("ttft %v, last token %v, %d token records, status %s; want %+v", r.TTFT, r.LastToken, r.TokenRecords, r.Status, want)
	}
	if want.TTFO != nil && r.TTFO != schema.Some(*want.TTFO*ms) {
		t.Errorf("ttfo %v, want %d ms", r.TTFO, *want.TTFO)
	}
	if want.N != nil && r.OutputTokens != schema.Some(*want.N) {
		t.Errorf("N %v, want %d", r.OutputTokens, *want.N)
	}
	if len(got.times(1)) != int(want.TokenRecords) {
		t.Errorf("%d token events, want %d", len(got.times(1)), want.TokenRecords)
	}
}

// TestCases plays every case whole, byte by byte and cut at random, with each way
// of framing a body.
func TestCases(t *testing.T) {
	otherAPIs := []string{"T18", "T20"} // of SGLang and of OpenAI Responses
	const plain = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
	same := func(s string) string { return s }
	framings := []struct {
		name  string
		head  string
		frame func(string) string
		end   []step
	}{
		{"chunked", streamHead, chunk, []step{toClient(2000, "0\r\n\r\n")}},
		{"close-delimited", plain + "\r\n", same, []step{ends(stream.ToClient, 2000, stream.FIN)}},
	}
	for _, c := range readCases(t) {
		if slices.Contains(otherAPIs, c.ID) {
			continue
		}
		path := "/v1/chat/completions"
		if c.ID == "T25" {
			path = "/v1/completions"
		}
		for _, f := range framings {
			t.Run(c.ID+"/"+f.name, func(t *testing.T) {
				steps := c.steps(t, path, f.head, f.frame, f.end)
				c.check(t, play(t, whole, steps...))
				c.check(t, play(t, byteByByte, steps...))
				for seed := range uint64(1000) {
					c.check(t, play(t, random(rand.New(rand.NewPCG(seed, 0))), steps...))
					if t.Failed() {
						t.Fatalf("cut with seed %d", seed)
					}
				}
			})
		}
	}
}
