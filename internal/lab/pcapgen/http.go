package pcapgen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// wordList is what prompts and answers are made of, JSON escapes included.
const wordList = `the of and to in a is that for it as with on are this by be from at which
 or an model latency token cache memory bandwidth kernel batch request prefill decode attention head layer
 queue schedule percentile median tail jitter stall throughput server client stream event chunk buffer
 café naïve 延迟 令牌 显存 带宽 → ✓ 0.5 42 1024 fp16 int8 ( ) , . ; : - \n \" \\`

var words = strings.Fields(wordList)

func word(r *rand.Rand) string { return words[r.IntN(len(words))] }

// dialect is a server's way to write chat completion chunks.
type dialect struct {
	model      string
	extra      string // top-level fields between model and choices
	afterDelta string // what follows the text of a delta, up to the filling
	filling    bool   // whether 1 to 16 random characters follow, as OpenAI sends
	end        string // what ends a chunk that bears text
	usage      string // what follows the counts in the usage object
}

// dialects returns the two ways that connections speak: vLLM's and OpenAI's.
func dialects() [2]dialect {
	return [2]dialect{
		{
			model:      "meta-llama/Llama-3.1-8B-Instruct",
			afterDelta: `"},"logprobs":null,"finish_reason":null}]`,
			end:        "}\n\n",
		},
		{
			model:      "gpt-4o-mini-2024-07-18",
			extra:      `"service_tier":"default","system_fingerprint":"fp_0aa8d3e20b",`,
			afterDelta: `"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"`,
			filling:    true,
			end:        "\"}\n\n",
			usage: `,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},` +
				`"completion_tokens_details":{"reasoning_tokens":0}`,
		},
	}
}

// plain plans a health check.
func (g *generator) plain(c *client) *Request {
	r := &Request{Kind: KindHealth}
	g.ask(c, r, fmt.Appendf(nil, "GET /health HTTP/1.1\r\nHost: llm.internal:%d\r\nUser-Agent: probe/1\r\nAccept: */*\r\n\r\n", g.Port))
	const body = `{"status":"ok"}`
	message := []byte("HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n" + body)
	at := r.RequestEnd + 300_000 + int64(c.rng.ExpFloat64()*1e6)
	k := clock{segs: g.transfer(c, toClient, []write{{at, message}})}
	r.Head, _ = k.at(len(message) - len(body))
	r.StreamEnd, _ = k.at(len(message))
	return r
}

// chat plans a chat completion.
func (g *generator) chat(c *client) *Request {
	rng := c.rng
	prompt := int(float64(g.PromptTokens) * math.Exp(0.9*rng.NormFloat64()))
	prompt = max(4, min(prompt, 16000))
	tokens := int(float64(g.Tokens)*(1+g.TokenSpread*rng.NormFloat64()) + 0.5)
	tokens = max(2, tokens)
	d := dialects()[c.conn.dialect]
	r := &Request{Kind: KindChat, PromptTokens: prompt, OutputTokens: tokens}
	g.ask(c, r, g.chatRequest(rng, d, prompt))

	r.ID = fmt.Sprintf("chatcmpl-%016x%016x", rng.Uint64(), rng.Uint64())
	wait := (ms(g.TTFT) + ms(g.TTFTPerPromptToken)*float64(prompt)) * math.Exp(0.15*rng.NormFloat64())
	a := newAnswer(r, d)
	g.stream(rng, a, r.RequestEnd+int64(wait*1e6))
	segs := g.transfer(c, toClient, a.writes)
	r.readTimes(segs, a)
	g.sum.Streams++
	g.sum.Events += int64(len(a.events))
	g.sum.TokenEvents += int64(tokens)
	g.sum.SplitEvents += countSplit(segs, a.events)
	return r
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// ask plans the request message and fills in what is known by then.
func (g *generator) ask(c *client, r *Request, message []byte) {
	k := c.conn
	r.Index, r.Connection = g.sum.Requests, k.id
	r.Client = fmt.Sprintf("%d.%d.%d.%d:%d", k.clientIP[0], k.clientIP[1], k.clientIP[2], k.clientIP[3], k.port)
	g.sum.Requests++
	at := c.now + 50_000 + int64(c.rng.ExpFloat64()*1e8)
	segs := g.transfer(c, toServer, []write{{at, message}})
	r.RequestStart = segs[0].at
	for _, s := range segs {
		r.RequestEnd = max(r.RequestEnd, s.at)
	}
}

func (g *generator) chatRequest(rng *rand.Rand, d dialect, prompt int) []byte {
	var b []byte
	b = append(b, `{"model":"`...)
	b = append(b, d.model...)
	b = append(b, `","messages":[{"role":"system","content":"You are a careful assistant."},{"role":"user","content":"`...)
	for i := range prompt {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, word(rng)...)
	}
	b = append(b, `"}],"temperature":0.7,"max_tokens":2048,"stream":true,"stream_options":{"include_usage":true}}`...)
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: llm.internal:%d\r\nUser-Agent: OpenAI/Python 1.51.0\r\n"+
		"Accept: application/json\r\nAuthorization: Bearer sk-local-0000000000000000\r\nContent-Type: application/json\r\n"+
		"Connection: keep-alive\r\nContent-Length: %d\r\n\r\n", g.Port, len(b))
	return append([]byte(head), b...)
}

// span is bytes off to end of a response.
type span struct{ off, end int }

// answer is a streamed response that is being composed.
type answer struct {
	dialect
	req    *Request
	prefix string // how each event begins
	text   []byte // of the last event; reused

	head   int    // bytes of the response head
	events []span // from the chunk's first byte to the event's last one
	held   []byte // composed, not yet written
	size   int    // bytes composed
	writes []write
}

func newAnswer(r *Request, d dialect) *answer {
	created := r.RequestEnd / 1e9
	a := &answer{dialect: d, req: r}
	a.prefix = fmt.Sprintf(`data: {"id":"%s","object":"chat.completion.chunk","created":%d,"model":"%s",%s`, r.ID, created, d.model, d.extra)
	a.held = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\ndate: %s\r\nserver: uvicorn\r\n"+
		"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\nx-request-id: %s\r\ntransfer-encoding: chunked\r\n\r\n",
		time.Unix(created, 0).UTC().Format(http.TimeFormat), strings.TrimPrefix(r.ID, "chatcmpl-"))
	a.head = len(a.held)
	a.size = a.head
	return a
}

// flush writes what is held.
func (a *answer) flush(at int64) {
	a.writes = append(a.writes, write{at, a.held})
	a.held = nil
}

// chunk holds one HTTP chunk.
func (a *answer) chunk(body []byte) {
	n := len(a.held)
	a.held = strconv.AppendInt(a.held, int64(len(body)), 16)
	a.held = append(a.held, "\r\n"...)
	a.held = append(a.held, body...)
	a.held = append(a.held, "\r\n"...)
	a.size += len(a.held) - n
}

// event holds an event, in two chunks if cut is not 0.
func (a *answer) event(text []byte, cut int) {
	start := a.size
	if cut > 0 {
		a.chunk(text[:cut])
	}
	a.chunk(text[cut:])
	a.events = append(a.events, span{start, a.size - len("\r\n")})
}

// token composes the event of one token.
func (a *answer) token(rng *rand.Rand, first bool) []byte {
	b := append(a.text[:0], a.prefix...)
	b = append(b, `"choices":[{"index":0,"delta":{"content":"`...)
	if !first {
		b = append(b, ' ')
	}
	b = append(b, word(rng)...)
	b = append(b, a.afterDelta...)
	if a.filling {
		const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEF0123456789"
		for range 1 + rng.IntN(16) {
			b = append(b, alphabet[rng.IntN(len(alphabet))])
		}
	}
	a.text = append(b, a.end...)
	return a.text
}

// stream composes the whole response; at is when its head is sent. Servers send
// the head and the role event when the first token is ready.
func (g *generator) stream(rng *rand.Rand, a *answer, at int64) {
	a.flush(at)
	a.event([]byte(a.prefix+`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`+"\n\n"), 0)
	a.flush(at + 40_000)

	at += 90_000 + int64(rng.ExpFloat64()*60_000)
	rechunk := g.Rechunk > 0 && rng.Float64() < g.Rechunk
	hold := 0 // events of the current write that are still to come
	for i := range a.req.OutputTokens {
		if i > 0 {
			at += g.gap(rng)
		}
		text := a.token(rng, i == 0)
		cut := 0
		if rechunk {
			cut = 1 + rng.IntN(len(text)-1)
		}
		a.event(text, cut)
		if hold > 0 {
			hold--
		} else if rng.Float64() < g.Coalesce {
			hold = 1 + rng.IntN(7)
		}
		if hold == 0 || i+1 == a.req.OutputTokens {
			a.flush(at)
		}
	}
	a.finish(at)
}

// gap draws the time between two tokens, in nanoseconds.
func (g *generator) gap(rng *rand.Rand) int64 {
	d := ms(g.ITL) * 1e6 * math.Exp(g.ITLSigma*rng.NormFloat64())
	if rng.Float64() < g.Stall {
		d *= 5 + 25*rng.Float64()
	}
	return int64(d)
}

// finish composes the end: finish reason, usage, [DONE], last chunk.
func (a *answer) finish(at int64) {
	a.event([]byte(a.prefix+`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`+"\n\n"), 0)
	in, out := a.req.PromptTokens, a.req.OutputTokens
	a.event(fmt.Appendf(nil, `%s"choices":[],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d%s}}`+"\n\n",
		a.prefix, in, in+out, out, a.usage), 0)
	a.event([]byte("data: [DONE]\n\n"), 0)
	a.flush(at + 60_000)
	a.chunk(nil)
	a.flush(at + 180_000)
}
