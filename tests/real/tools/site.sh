#!/usr/bin/env bash
# VitePress, which makes the site of docs/, in the version of build/site/packages.lock.
#
#   site.sh install DIR   its packages from npm, into DIR/node_modules
#
# Licence: MIT.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

case "$#:${1:-}" in
  2:install)
    dir=$(make_dir "$2")
    cd "$here/../../.."
    retry npx -y deno@2.9.6 run -A build/site.ts install "$dir"
    ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
