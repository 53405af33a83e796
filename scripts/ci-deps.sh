#!/usr/bin/env bash
# Installs what the tests with the build tag further need: tcpdump, tshark and
# Chromium from Debian, and pyarrow into .venv. Run it as root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends tcpdump tshark chromium python3-venv

# Debian's Python: the one that python3-venv belongs to.
[[ -x .venv/bin/python ]] || /usr/bin/python3 -m venv .venv
.venv/bin/python -m pip install -q --disable-pip-version-check 'pyarrow==26.0.1'
