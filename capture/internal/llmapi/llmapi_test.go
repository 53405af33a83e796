package llmapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/schema"
)

func TestMatch(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": "openai_chat", "/gateway/x/v1/chat/completions": "openai_chat", "/chat/completions": "openai_chat",
		"/v1/completions": "openai_completions", "/openai/v1/completions": "openai_completions",
		"/v1/messages": Unknown, "/completion": Unknown, "": Unknown, "/v1/chat/completions/x": Unknown,
	} {
		if api, ok := Match(path); api.Name != want || ok != (want != Unknown) {
			t.Errorf("Match(%q) = %q, %v; want %q", path, api.Name, ok, want)
		}
	}
}

func TestDone(t *testing.T) {
	for data, want := range map[string]bool{"[DONE]": true, "[DONE] ": true, "[DONE": false, "": false, "{}": false} {
		if Done([]byte(data)) != want {
			t.Errorf("Done(%q) is %v", data, !want)
		}
	}
}

func TestRequest(t *testing.T) {
	tests := []struct {
		body string
		want Request
		ok   bool
	}{
		{`{"model":"m","stream":true,"n":2,"max_tokens":64,"temperature":0.7,"messages":[{"role":"user","content":"h\u00e9\ud83d\ude42"}]}`,
			Request{"m", schema.Some(true), 2, schema.Some[int64](64), schema.Some(0.7), 7}, true},
		{`{"prompt":["ab","c"],"max_completion_tokens":1e2}`, Request{MaxTokens: schema.Some[int64](100), PromptBytes: 3}, true},
		{`{"prompt":[1,2,3]}`, Request{}, true},
		{`{"messages":[{"content":[{"type":"text","text":"abc"},{"type":"image_url","image_url":{"url":"data:xxxx"}}]}]}`, Request{PromptBytes: 3}, true},
		{`{"model":null,"stream":null,"n":null,"max_tokens":null,"temperature":null,"messages":null}`, Request{}, true},
		{`{"prompt":` + strings.Repeat("[", 1e6) + `"a"` + strings.Repeat("]", 1e6) + `}`, Request{}, true},
		{`{"prompt":` + strings.Repeat("[", 1e6), Request{}, false},
		{`{"model":"m","messages":[`, Request{Model: "m"}, false},
		{`[]`, Request{}, false},
		{``, Request{}, false},
	}
	for _, tt := range tests {
		var got Request
		if ok := openAIRequest([]byte(tt.body), &got); ok != tt.ok {
			t.Errorf("%.100s: ok %v", tt.body, ok)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%.100s (-want +got):\n%s", tt.body, d)
		}
	}
}

func TestRecord(t *testing.T) {
	type facts struct {
		kinds            string
		choice, choices  int32
		text             int64
		role, delta      bool
		usage            Usage
		finish, errorTyp string
	}
	tests := []struct {
		record string
		want   facts
	}{
		{`{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, facts{choices: 1, role: true, delta: true}},
		{`{"choices":[{"index":3,"delta":{"content":"a\"b"}}]}`, facts{kinds: "content", choice: 3, choices: 1, text: 3, delta: true}},
		{`{"choices":[{"index":0,"text":"ab","finish_reason":"length"}]}`, facts{kinds: "content+finish", choices: 1, text: 2, delta: true, finish: "length"}},
		{`{"choices":[{"index":0,"text":"","finish_reason":""}]}`, facts{choices: 1, delta: true}},
		{`{"choices":[{"index":0,"delta":{"reasoning_content":"x"}}]}`, facts{kinds: "reasoning", choices: 1, text: 1, delta: true}},
		{`{"choices":[{"index":0,"delta":{"reasoning":"x","content":"y"}}]}`, facts{kinds: "content+reasoning", choices: 1, text: 2, delta: true}},
		{`{"choices":[{"index":0,"delta":{"refusal":"no"}}]}`, facts{kinds: "refusal", choices: 1, text: 2, delta: true}},
		{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}`, facts{kinds: "tool", choices: 1, text: 1, delta: true}},
		{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]}}]}`, facts{kinds: "tool", choices: 1, text: 7, delta: true}},
		{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}`, facts{choices: 1, delta: true}},
		{`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":null}}]}`, facts{choices: 1, delta: true}},
		{`{"choices":[{"index":0,"content_filter_results":{}}]}`, facts{choices: 1}},
		{`{"choices":[],"prompt_filter_results":[]}`, facts{}},
		{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}}`, facts{usage: Usage{Prompt: 9, Output: 3, Cached: schema.Some[int64](4)}}},
		{`{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}}`, facts{usage: Usage{Prompt: 12, Output: 291, Reasoning: schema.Some[int64](290)}}},
		{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":null}}}`, facts{usage: Usage{Prompt: 9, Output: 3, Cached: schema.Some[int64](0)}}},
		{`{"choices":[],"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":-3,"total_tokens":1e300,"prompt_tokens_details":{"cached_tokens":-1}}}`, facts{}},
		{`{"choices":[],"usage":null}`, facts{}},
		{`{"choices":[{"index":0,"delta":{"content":"x"}}],"prompt_progress":{"total":1}}`, facts{kinds: "progress+content", choices: 1, text: 1, delta: true}},
		{`{"choices":[],"timings":{"a":[1,{"b":"}"}]}}`, facts{kinds: "timings"}},
		{`{"error":{"message":"m","type":"T","code":500}}`, facts{kinds: "error", errorTyp: "T"}},
		{`{"error":{"message":"m","type":null,"code":500}}`, facts{kinds: "error", errorTyp: "500"}},
		{`{"error":"text"}`, facts{kinds: "error"}},
		{`{"error":null}`, facts{}},
		{`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, facts{kinds: "content", choices: 2, text: 2, delta: true}},
		{`{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"b"}}]}`, facts{kinds: "content", choice: 1, choices: 2, text: 1, delta: true}},
	}
	for _, tt := range tests {
		var d Delta
		if !openAIRecord([]byte(tt.record), &d) {
			t.Errorf("%s: not readable", tt.record)
		}
		got := facts{d.Kinds.String(), d.Choice, d.Choices, d.TextBytes, d.HasRole, d.HasDelta, d.Usage, string(d.Finish), string(d.ErrorType)}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(facts{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.record, diff)
		}
	}
	for _, bad := range []string{``, `{`, `x`, `[]`, `{"choices":[}`, `{"choices":[{"delta":{"content":"a`, `{"a":1}x`, `{"a" 1}`, `{"a":}`, `{,}`, `{"a":1,}`, "{\"a\":\"\\", `{"choices":[{"index":0}`} {
		var d Delta
		if openAIRecord([]byte(bad), &d) {
			t.Errorf("%q: should not be readable", bad)
		}
	}
}

func TestTextLen(t *testing.T) {
	for _, s := range []string{"", "abc", `a\nb`, `\"`, `\\`, `é`, `\u00e9`, `\u6f22`, `\ud83d\ude42`, `\u0000`} {
		var want string
		if err := json.Unmarshal([]byte(`"`+s+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := Text([]byte(s)); got != want {
			t.Errorf("Text(%q) = %q, want %q", s, got, want)
		}
		if got := textLen([]byte(s)); got != len(want) {
			t.Errorf("textLen(%q) = %d, want %d", s, got, len(want))
		}
	}
	for _, s := range []string{`\`, `\u`, `\u12`, `\uzzzz`} {
		_ = textLen([]byte(s)) // must not panic
	}
}

// record is the OpenAI shape for encoding/json: the oracle.
type record struct {
	Choices []struct {
		Index int32
		Text  string
		Delta struct {
			Content          string
			ReasoningContent string `json:"reasoning_content"`
		}
		FinishReason string `json:"finish_reason"`
	}
}

// FuzzRecord checks that whatever encoding/json reads is read alike, and that a
// Stream that reuses what it learned says the same as one that does not.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"obfuscation":"abc"}`,
		`{"choices":[{"delta":{"reasoning_content":"\u00e9"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`,
		`{"choices":[{"text":"x","logprobs":{"tokens":["x"]}}]}`, `{"error":{"code":1}}`, `{"a":[1,-2.5e3,true,false,null,{"b":{}}]}`,
	} {
		f.Add([]byte(seed), "Ho")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		var d Delta
		ok := openAIRecord(data, &d)
		var want record
		if json.Valid(data) && data[0] == '{' && json.Unmarshal(data, &want) == nil && plain(data) {
			if !ok {
				t.Fatalf("valid JSON, not readable")
			}
			text, finish := 0, ""
			for _, c := range want.Choices {
				text += len(c.Text) + len(c.Delta.Content) + len(c.Delta.ReasoningContent)
				if c.FinishReason != "" {
					finish = c.FinishReason
				}
			}
			if d.Kinds.Has(schema.KindContent|schema.KindReasoning) != (text > 0) || d.Choices != int32(len(want.Choices)) || d.Kinds.Has(schema.KindFinish) != (finish != "") {
				t.Fatalf("got %+v, want %+v", d, want)
			}
		}
		checkStream(t, data, text)
	})
}

// plain reports whether the two decoders can be compared on data: names stand once,
// in the spelling of the API, and text is ASCII without escapes.
func plain(data []byte) bool {
	s := string(data)
	for _, r := range s {
		if r == '\\' || r > 126 {
			return false
		}
	}
	for _, name := range []string{"choices", "text", "content", "reasoning", "delta", "finish_reason", "index", "refusal", "tool_calls", "function_call", "audio", "message"} {
		if strings.Count(strings.ToLower(s), name) > 1 || strings.Count(strings.ToLower(s), name) != strings.Count(s, `"`+name) {
			return false
		}
	}
	return !strings.Contains(s, `"refusal`) && !strings.Contains(s, `"tool_calls`) && !strings.Contains(s, `"function_call`) && !strings.Contains(s, `"audio`) && !strings.Contains(s, `"message`)
}

func checkStream(t *testing.T, data []byte, text string) {
	t.Helper()
	stream := NewStream(openAI("openai_chat"))
	other := []byte(strings.Replace(string(data), "Hi", text, 1))
	for _, rec := range [][]byte{data, other, data, other} {
		got, okA := stream.Record(rec)
		a := *got
		var b Delta
		okB := openAIRecord(rec, &b)
		if !okB {
			b.Reset()
		}
		a.Model, b.Model = nil, nil // named once
		a.pattern, b.pattern = pattern{}, pattern{}
		if diff := cmp.Diff(b, a, cmp.Exporter(func(reflect.Type) bool { return true })); okA != okB || diff != "" {
			t.Fatalf("%s: %v, %v (-alone +in a stream):\n%s", rec, okB, okA, diff)
		}
	}
}

// TestStreamReuse checks that the shortcut is taken where it may be, and not where not.
func TestStreamReuse(t *testing.T) {
	rec := func(text, pad string) []byte {
		return fmt.Appendf(nil, `{"id":"x","choices":[{"index":0,"delta":{"content":"%s"}}],"obfuscation":"%s"}`, text, pad)
	}
	s := NewStream(openAI("openai_chat"))
	s.Record(rec("one", "abc"))
	for _, tt := range []struct {
		data []byte
		want int
	}{
		{rec("three", "x"), 5}, {rec("t", ""), 1}, {rec("", "abc"), 0}, {rec(`a\n`, "abc"), 0}, {rec("a", `a\n`), 0},
		{rec(`a"},"x":{"content":"b`, ""), 0}, {rec("é", ""), 2}, {[]byte(`{"id":"y"}`), 0}, {nil, 0},
	} {
		if got := s.same(tt.data); got != tt.want {
			t.Errorf("same(%s) = %d, want %d", tt.data, got, tt.want)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	rec := []byte(`{"id":"chatcmpl-00000000000000000000000000000007","object":"chat.completion.chunk","created":1750000000,"model":"some/Model-8B","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}`)
	b.Run("walk", func(b *testing.B) {
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		var d Delta
		for b.Loop() {
			d.Reset()
			openAIRecord(rec, &d)
		}
	})
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		s := NewStream(openAI("openai_chat"))
		for b.Loop() {
			s.Record(rec)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(rec)))
		b.ReportAllocs()
		for b.Loop() {
			var r record
			if err := json.Unmarshal(rec, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
