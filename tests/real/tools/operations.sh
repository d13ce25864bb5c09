#!/usr/bin/env bash
# The programs that docs/guide/backup.md and docs/guide/monitoring.md name, for tests: restic, rclone and fail2ban as Debian packs them.
#
#   operations.sh install DIR    unpacks them into DIR; nothing is installed on the machine, nothing starts
#
# Needs Debian or Ubuntu with apt-get and dpkg-deb.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

install() {
  [ ! -e "$dir/complete" ] || return 0
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  rm -rf -- "$dir/packages" "$dir/unpacked"
  mkdir -p "$dir/packages" "$dir/unpacked"
  (
    cd "$dir/packages"
    retry apt_download fail2ban rclone restic
    for package in *.deb; do dpkg-deb -x "$package" ../unpacked; done
  ) >/dev/null
  rm -r "$dir/packages"
  touch "$dir/complete"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
