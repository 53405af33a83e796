#!/usr/bin/env bash
# Runs each fuzz target of the module for a while: fuzz.sh [TIME], 30s by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${1:-30s}
go=${GO:-go}

targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . || true)
if [[ -z $targets ]]; then
	echo "no fuzz target"
	exit 0
fi
while IFS=: read -r file declaration; do
	name=${declaration#func }
	name=${name%(}
	echo "-- $(dirname "$file") $name"
	"$go" test "$(dirname "$file")" -run '^$' -fuzz "^$name\$" -fuzztime "$time"
done <<<"$targets"
