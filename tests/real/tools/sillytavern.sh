#!/usr/bin/env bash
# The real SillyTavern, which is the judge of cards that go there and back, and the maker of a folder to import.
#
#   sillytavern.sh install DIR   puts the published package under DIR/node_modules; needs Node 20 or later and npm
#
# Its licence is AGPL-3.0: it is run beside the tests, and nothing of it is shipped.
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/retry.sh"

VERSION=1.19.0
verb=${1:?verb: install}
dir=$(mkdir -p "${2:?directory}" && cd "$2" && pwd)

case $verb in
install)
  if [ "$(cat "$dir/installed" 2>/dev/null)" != "$VERSION" ]; then
    rm -rf "$dir/node_modules"
    printf '{"private":true}\n' >"$dir/package.json"
    retry npm install --prefix "$dir" --silent --no-audit --no-fund --ignore-scripts "sillytavern@$VERSION"
    printf '%s\n' "$VERSION" >"$dir/installed"
  fi
  echo "SillyTavern $(cat "$dir/installed")"
  ;;
*) echo "unknown verb: $verb" >&2; exit 2 ;;
esac
