#!/usr/bin/env bash
# Checks the workflows of GitHub: actionlint, which reads their scripts with Debian's shellcheck.
#
#   workflows.sh install DIR    builds DIR/bin/actionlint and unpacks DIR/usr/bin/shellcheck; nothing is installed on the machine
#
# Needs Go 1.25 or newer, and Debian or Ubuntu with apt-get and dpkg-deb.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

actionlint_version=1.7.12

install() {
  [ "$(cat "$dir/complete" 2>/dev/null)" != "$actionlint_version" ] || return 0
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  command -v go >/dev/null || fail "needs Go"
  rm -rf -- "$dir/packages"
  mkdir -p "$dir/packages"
  (
    cd "$dir/packages"
    retry apt_download shellcheck
    for package in *.deb; do dpkg-deb -x "$package" ..; done
    CGO_ENABLED=0 GOWORK=off GOFLAGS=-modcacherw GOBIN=$dir/bin \
      retry go install "github.com/rhysd/actionlint/cmd/actionlint@v$actionlint_version"
  ) >/dev/null
  rm -r "$dir/packages"
  echo "$actionlint_version" >"$dir/complete"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  *) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
