package llmapi

import "tokentrace/schema"

// openAI is the chat and text completions API of OpenAI as OpenAI, vLLM, llama.cpp
// and many others speak it. The two differ in where the text stands: delta.content
// and text.
func openAI(name string) API {
	return API{Name: name, ParseRequest: openAIRequest, ParseRecord: openAIRecord, ParseBody: openAIRecord}
}

func openAIRequest(body []byte, r *Request) bool {
	w := walker{b: body}
	if !w.enter('{') {
		return false
	}
	for w.more('}') {
		switch string(w.key()) {
		case "model":
			r.Model = Text(w.str())
		case "stream":
			if v, ok := w.boolean(); ok {
				r.Stream = schema.Some(v)
			}
		case "n":
			if n, ok := w.integer(); ok {
				r.Choices = int32(min(max(n, 0), 1<<16))
			}
		case "max_tokens", "max_completion_tokens", "n_predict":
			if n, ok := w.integer(); ok {
				r.MaxTokens = schema.Some(n)
			}
		case "temperature":
			if f, ok := w.number(); ok {
				r.Temperature = schema.Some(f)
			}
		case "messages", "prompt":
			promptText(&w, r, 0)
		default:
			w.skip()
		}
	}
	return w.done()
}

// maxPromptDepth bounds how deep text is looked for in a prompt.
const maxPromptDepth = 8

// promptText adds up the text of a prompt: a string, a list of strings (or of
// token ids, which have no text), or messages whose content is a string or parts.
func promptText(w *walker, r *Request, depth int) {
	c := w.space()
	if depth > maxPromptDepth {
		c = 0
	}
	switch c {
	case '"':
		r.PromptBytes += int64(textLen(w.str()))
	case '[':
		for ok := w.enter('['); ok && w.more(']'); {
			promptText(w, r, depth+1)
		}
	case '{':
		for ok := w.enter('{'); ok && w.more('}'); {
			switch string(w.key()) {
			case "content", "text":
				promptText(w, r, depth+1)
			default:
				w.skip()
			}
		}
	default:
		w.skip()
	}
}

// openAIRecord reads a chunk of a stream, or a whole response.
func openAIRecord(data []byte, d *Delta) bool {
	w := walker{b: data}
	if !w.enter('{') {
		return false
	}
	for w.more('}') {
		switch string(w.key()) {
		case "choices":
			openAIChoices(&w, d)
		case "usage":
			openAIUsage(&w, &d.Usage)
		case "model":
			d.Model = w.str()
		case "error":
			openAIError(&w, d)
		case "obfuscation": // random letters, so that the length tells nothing
			n := len(w.str())
			d.pattern.hole(w.i-1-n, w.i-1)
		case "prompt_progress":
			mark(&w, d, schema.KindProgress)
		case "timings", "metrics":
			mark(&w, d, schema.KindTimings)
		default:
			w.skip()
		}
	}
	return w.done()
}

// mark sets a kind where the value is not null, and passes over the value.
func mark(w *walker, d *Delta, kind schema.Kinds) {
	if !w.null() {
		d.Kinds |= kind
		w.skip()
	}
}

func openAIChoices(w *walker, d *Delta) {
	if !w.enter('[') {
		return
	}
	for w.more(']') {
		d.HasChoice = true
		d.Choices++
		openAIChoice(w, d)
	}
}

func openAIChoice(w *walker, d *Delta) {
	if !w.enter('{') {
		return
	}
	bore := d.Kinds.TokenBearing()
	before := d.Choice
	index := int32(0)
	for w.more('}') {
		switch string(w.key()) {
		case "index":
			n, _ := w.integer()
			index = int32(n)
		case "delta", "message":
			d.HasDelta = true
			openAIDelta(w, d)
		case "text":
			d.HasDelta = true
			d.bears(w, schema.KindContent)
		case "finish_reason":
			if reason := w.str(); len(reason) > 0 {
				d.Finish = reason
				d.Kinds |= schema.KindFinish
			}
		case "logprobs":
			d.Logprobs += openAILogprobs(w)
		case "token_ids":
			d.Logprobs = max(d.Logprobs, elements(w))
		default:
			w.skip()
		}
	}
	d.Choice = before
	if d.Choices == 1 || !bore && d.Kinds.TokenBearing() {
		d.Choice = index
	}
}

// bears adds a string to the token-bearing text, if it is one and not empty.
func (d *Delta) bears(w *walker, kind schema.Kinds) {
	text := w.str()
	if len(text) == 0 {
		return
	}
	d.Kinds |= kind
	d.TextBytes += int64(textLen(text))
	d.pattern.texts++
	d.pattern.text = d.pattern.hole(w.i-1-len(text), w.i-1)
}

func openAIDelta(w *walker, d *Delta) {
	if !w.enter('{') {
		return
	}
	for w.more('}') {
		switch string(w.key()) {
		case "role":
			d.HasRole = len(w.str()) > 0 || d.HasRole
		case "content":
			d.bears(w, schema.KindContent)
		case "reasoning_content", "reasoning":
			d.bears(w, schema.KindReasoning)
		case "refusal":
			d.bears(w, schema.KindRefusal)
		case "tool_calls":
			for ok := w.enter('['); ok && w.more(']'); {
				openAIToolCall(w, d)
			}
		case "function_call": // before tool calls
			openAIFunction(w, d)
		case "audio":
			openAIAudio(w, d)
		default:
			w.skip()
		}
	}
}

func openAIToolCall(w *walker, d *Delta) {
	if !w.enter('{') {
		return
	}
	for w.more('}') {
		if string(w.key()) == "function" {
			openAIFunction(w, d)
		} else {
			w.skip()
		}
	}
}

func openAIFunction(w *walker, d *Delta) {
	if !w.enter('{') {
		return
	}
	for w.more('}') {
		switch string(w.key()) {
		case "name", "arguments":
			d.bears(w, schema.KindTool)
		default:
			w.skip()
		}
	}
}

// openAIAudio counts audio as content: its data is base64, its transcript text.
func openAIAudio(w *walker, d *Delta) {
	if !w.enter('{') {
		return
	}
	for w.more('}') {
		switch string(w.key()) {
		case "data", "transcript":
			d.bears(w, schema.KindContent)
		default:
			w.skip()
		}
	}
}

// openAILogprobs counts the entries of logprobs: content[] of chat, tokens[] of
// completions.
func openAILogprobs(w *walker) (n int32) {
	if !w.enter('{') {
		return 0
	}
	for w.more('}') {
		switch string(w.key()) {
		case "content", "tokens":
			n += elements(w)
		default:
			w.skip()
		}
	}
	return n
}

// elements counts the elements of an array.
func elements(w *walker) (n int32) {
	if !w.enter('[') {
		return 0
	}
	for w.more(']') {
		w.skip()
		n++
	}
	return n
}

// openAIUsage reads token counts. The output is total - prompt where all three
// are there: xAI leaves reasoning out of completion_tokens, OpenAI does not.
func openAIUsage(w *walker, u *Usage) {
	if !w.enter('{') {
		return
	}
	var completion, total int64
	for w.more('}') {
		switch string(w.key()) {
		case "prompt_tokens":
			u.Prompt = w.count().V
		case "completion_tokens":
			completion = w.count().V
		case "total_tokens":
			total = w.count().V
		case "prompt_tokens_details":
			larger(&u.Cached, member(w, "cached_tokens"))
		case "prompt_cache_hit_tokens": // DeepSeek
			larger(&u.Cached, w.count())
		case "completion_tokens_details":
			u.Reasoning = member(w, "reasoning_tokens")
		default:
			w.skip()
		}
	}
	u.Output = completion
	if completion > 0 && u.Prompt > 0 && total > u.Prompt {
		u.Output = total - u.Prompt
	}
}

// larger keeps the larger of two counts that may be missing.
func larger(dst *schema.Opt[int64], n schema.Opt[int64]) {
	if n.OK && (!dst.OK || n.V > dst.V) {
		*dst = n
	}
}

// member returns one integer of an object.
func member(w *walker, name string) (out schema.Opt[int64]) {
	if !w.enter('{') {
		return out
	}
	for w.more('}') {
		if string(w.key()) == name {
			out = w.count()
		} else {
			w.skip()
		}
	}
	return out
}

// openAIError reads an error: an object with type and code, or a string.
func openAIError(w *walker, d *Delta) {
	if w.null() {
		return
	}
	d.Kinds |= schema.KindError
	if w.space() != '{' {
		w.skip()
		return
	}
	var code []byte
	for ok := w.enter('{'); ok && w.more('}'); {
		switch string(w.key()) {
		case "type":
			d.ErrorType = w.str()
		case "code":
			if w.space() == '"' {
				code = w.str()
			} else {
				code = w.literal()
			}
		default:
			w.skip()
		}
	}
	if len(d.ErrorType) == 0 {
		d.ErrorType = code
	}
}
