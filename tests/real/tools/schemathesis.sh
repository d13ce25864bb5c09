#!/usr/bin/env bash
# Schemathesis, which sends requests that it derives from an OpenAPI document.
#
#   schemathesis.sh install DIR   the package from PyPI, in DIR/venv
#   schemathesis.sh run DIR SECONDS PARLOR...
#                                 starts Parlor with a folder of its own in a network namespace that has only a loopback
#                                 interface, because requests contain addresses that are fetched, and tests it; exits 1
#                                 with the findings
#
# Licence: MIT.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

pins=$here/clients/schemathesis.txt
port=18787

# Wheels only: nothing is compiled, no setup.py runs. Every dependency is named.
install() {
  cmp -s "$pins" "$dir/installed" && return
  make_venv "$dir/venv"
  retry "$dir/venv/bin/python" -m pip install -q --no-deps --only-binary :all: -r "$pins"
  cp "$pins" "$dir/installed"
}

# Runs inside the namespace.
fuzz() {
  local seconds=$1 work server status=0
  shift
  ip link set lo up
  work=$(mktemp -d)
  "$@" --port "$port" --data-dir "$work/data" >"$work/server.log" 2>&1 &
  server=$!
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "$server" || { cat "$work/server.log"; return 1; }
    sleep 0.2
  done
  # Model and image servers can't be reached from here, so 502 to 504 are honest answers.
  printf '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 502, 503, 504]\n' >"$work/schemathesis.toml"
  # Not called: the endless stream, sign-in, which locks the fuzzer out, and what starts programs.
  (cd "$work" && "$dir/venv/bin/schemathesis" run "http://127.0.0.1:$port/api/openapi.json" \
    --url "http://127.0.0.1:$port" --no-color -w 1 --max-time "$seconds" --seed 1 \
    --phases examples,coverage,fuzzing,stateful --continue-on-failure --no-shrink --generation-database none \
    --request-timeout 60 --warnings off --suppress-health-check all \
    -c not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --exclude-path-regex '^/api/(events|tailnet/enable|auth|models/local/run|tools/servers|openapi.json)') || status=$?
  kill "$server"
  wait "$server" || true
  rm -rf "$work"
  return "$status"
}

verb=${1:-}
case "$verb" in
  install) dir=$(make_dir "$2"); install ;;
  run) exec unshare --net --map-root-user bash "${BASH_SOURCE[0]}" inside "${@:2}" ;;
  inside) dir=$2; fuzz "${@:3}" ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
