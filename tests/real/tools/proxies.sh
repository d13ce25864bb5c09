#!/usr/bin/env bash
# The reverse proxies of docs/guide/reverse-proxy.md, for tests: Caddy and nginx as Debian packs them.
#
#   proxies.sh install DIR    unpacks them into DIR/bin; nothing is installed on the machine, nothing starts
#
# Needs Debian or Ubuntu with apt-get and dpkg-deb.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

install() {
  [ ! -x "$dir/bin/caddy" ] || [ ! -x "$dir/bin/nginx" ] || return 0
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  local packages=$dir/packages
  rm -rf -- "$packages"
  mkdir -p "$packages/unpacked" "$dir/bin"
  (
    cd "$packages"
    retry apt_download caddy nginx
    for package in *.deb; do dpkg-deb -x "$package" unpacked; done
  ) >/dev/null
  cp "$packages/unpacked/usr/bin/caddy" "$packages/unpacked/usr/sbin/nginx" "$dir/bin/"
  rm -r "$packages"
  "$dir/bin/nginx" -v 2>/dev/null || fail "nginx lacks a library of this machine; apt-get install nginx gives them"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
