#!/usr/bin/env bash
# Measures 'capture pcap' against tcpdump on synthetic captures of 50 and 500 MB.
#
#   bench-decode.sh [--quick] [flags of benchdecode, such as -rounds 7]
#
# --quick leaves the 500 MB out. It needs tcpdump and, for the long run, 2 GB in
# TMPDIR, and leaves nothing behind.
set -euo pipefail

sizes=(50 500)
if [[ ${1:-} == --quick ]]; then
	sizes=(50)
	shift
fi
if ! command -v tcpdump >/dev/null; then
	echo "bench-decode: tcpdump is not installed: apt-get install tcpdump" >&2
	exit 1
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

echo "building" >&2
CGO_ENABLED=0 go build -trimpath -o "$tmp/" ./cmd/capture ./internal/lab/cmd/pcapgen ./internal/lab/cmd/benchdecode

files=()
for size in "${sizes[@]}"; do
	echo "generating $size MB" >&2
	seed=$((size == 50 ? 1 : 2))
	"$tmp/pcapgen" -o "$tmp/s$size.pcap" -size "${size}MB" -conc 64 -seed "$seed" >"$tmp/s$size.json"
	files+=("$tmp/s$size.pcap")
done
TMPDIR=$tmp "$tmp/benchdecode" -capture "$tmp/capture" "$@" "${files[@]}"
