#!/usr/bin/env bash
# Prometheus and promtool, for tests, as Debian packs them.
#
#   prometheus.sh install DIR    unpacks them into DIR/bin; nothing is installed on the machine, nothing starts
#
# Needs Debian or Ubuntu with apt-get and dpkg-deb.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

install() {
  [ ! -x "$dir/bin/prometheus" ] || [ ! -x "$dir/bin/promtool" ] || return 0
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  local packages=$dir/packages
  rm -rf -- "$packages"
  mkdir -p "$packages/unpacked" "$dir/bin"
  (
    cd "$packages"
    retry apt_download prometheus
    for package in *.deb; do dpkg-deb -x "$package" unpacked; done
  ) >/dev/null
  cp "$packages/unpacked/usr/bin/prometheus" "$packages/unpacked/usr/bin/promtool" "$dir/bin/"
  rm -r "$packages"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
