#!/usr/bin/env bash
# OpenAI's own client for Python, for tests of the OpenAI-compatible API.
#
#   openai.sh install DIR   the package from PyPI, in DIR/venv
#
# Licence: Apache-2.0.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

# Wheels only: nothing is compiled, no setup.py runs. Every dependency is named.
pins=(
  openai==3.51.0
  annotated-types==0.8.0
  anyio==4.16.0
  h11==0.16.0
  httpcore2==2.16.2
  httpx2==2.16.2
  idna==3.20
  jiter==0.19.0
  pydantic==2.14.3
  pydantic-core==2.50.4
  sniffio==1.3.1
  truststore==0.10.5
  typing-extensions==4.16.0
  typing-inspection==0.4.5
)

install() {
  [ "$(cat "$dir/installed" 2>/dev/null)" = "${pins[*]}" ] && return
  make_venv "$dir/venv"
  retry "$dir/venv/bin/python" -m pip install -q --no-deps --only-binary :all: "${pins[@]}"
  "$dir/venv/bin/python" -m pip -q check
  printf '%s\n' "${pins[*]}" >"$dir/installed"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
