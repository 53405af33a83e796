// Package capture turns network traffic of LLM servers into a trace.
//
// The way of the data, one package a step:
//
//  1. pcapfile reads packets with their times.
//  2. packet finds the TCP segment in each.
//  3. tcp puts the segments of each connection in order and dates their bytes.
//  4. stream is what is handed on: byte runs with delivery times, and gaps.
//  5. http1 cuts them into messages.
//  6. framing cuts response bodies into records.
//  7. llmapi says what each record means.
//  8. exchange pairs requests with responses, counts tokens, and writes rows.
//  9. schema/tracedir stores the rows as Parquet.
//
// Steps 4 to 8 have no clock, no goroutine and no socket. What each step saw and
// what became of it is counted in the ledger, whose numbers add up.
package capture
