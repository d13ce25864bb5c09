#!/usr/bin/env bash
# A real Firefox, which the tests drive by WebDriver BiDi.
#
#   firefox.sh install DIR    DIR/firefox leads to the system's Firefox, or to Debian's firefox-esr; needs root or `sudo -n`
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

install_firefox() {
  local path
  if ! path=$(command -v firefox-esr || command -v firefox); then
    apt_install firefox-esr || fail "needs apt-get (Debian), or Firefox"
    path=$(command -v firefox-esr)
  fi
  ln -sfn "$path" "$dir/firefox"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install_firefox ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
