package cli

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Progress reports how far long work is, on a terminal only.
type Progress struct {
	w    io.Writer
	next time.Time
	used bool
}

// NewProgress returns a Progress on w; it is silent where w is not a terminal.
func NewProgress(w io.Writer) *Progress {
	f, ok := w.(*os.File)
	if !ok {
		return &Progress{}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &Progress{}
	}
	return &Progress{w: w, next: time.Now().Add(500 * time.Millisecond)}
}

// Report shows a line, at most five times a second.
func (p *Progress) Report(format string, args ...any) {
	if p.w == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(200 * time.Millisecond)
	p.used = true
	fmt.Fprintf(p.w, "\r\033[K"+format, args...)
}

// Done clears the line.
func (p *Progress) Done() {
	if p.used {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
