//go:build further

package lab_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tokentrace/internal/lab/pcapgen"
)

// Tests with the build tag further compare the project with other programs, and
// fail where one is not installed: scripts/ci-deps.sh installs them. Their names
// begin with TestFurther, so that '-run ^TestFurther' runs nothing else.

// writeCapture writes a synthetic capture and returns its name.
func writeCapture(t *testing.T, o pcapgen.Options) (string, pcapgen.Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "synthetic.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := pcapgen.Generate(f, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path, sum
}

func lossy() pcapgen.Options {
	o := pcapgen.DefaultOptions()
	o.Requests, o.Conc = 50, 8
	o.Lost, o.Dup, o.Reorder, o.Rechunk = 0.01, 0.01, 0.2, 0.5
	return o
}

func TestFurtherTcpdumpReadsTheSyntheticCapture(t *testing.T) {
	path, sum := writeCapture(t, lossy())
	out := run(t, "tcpdump", "-n", "-vv", "-r", path)
	text := string(out)
	if n := strings.Count(text, " proto TCP "); int64(n) != sum.Packets {
		t.Errorf("tcpdump shows %d packets, the generator wrote %d", n, sum.Packets)
	}
	if strings.Contains(text, "incorrect") || strings.Contains(text, "bad cksum") {
		t.Error("tcpdump finds a wrong checksum")
	}
}

func TestFurtherTsharkFindsEveryResponse(t *testing.T) {
	path, sum := writeCapture(t, lossy())
	out := run(t, "tshark", "-n", "-r", path, "-d", "tcp.port==8000,http",
		"-o", "tcp.reassemble_out_of_order:TRUE", "-Y", "http.response", "-T", "fields", "-e", "http.response.code")
	codes := strings.Fields(string(out))
	if len(codes) != sum.Requests {
		t.Errorf("tshark finds %d responses, the generator wrote %d", len(codes), sum.Requests)
	}
	for _, code := range codes {
		if n, err := strconv.Atoi(code); err != nil || n != 200 {
			t.Errorf("status %q", code)
		}
	}
}
