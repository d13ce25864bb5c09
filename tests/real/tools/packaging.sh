#!/usr/bin/env bash
# What judges the files in packaging/, for tests: Nix and patchelf as Debian packs them, and dclint with Compose's schema.
#
#   packaging.sh install DIR     unpacks them into DIR; nothing is installed on the machine
#   packaging.sh compose DIR     builds Docker Compose as DIR/docker-compose, in minutes; for LONG_TESTS
#   packaging.sh nix DIR ARGUMENT...   runs nix with flakes, without network, in a store and a home below DIR
#
# Needs Debian or Ubuntu with apt-get and dpkg-deb, Node 20 and npm; Compose needs Go.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

DCLINT=3.1.0
COMPOSE=2.40.3
# nix-bin with the libraries that a machine may lack.
PACKAGES=(nix-bin patchelf libarchive13 libboost-context1.74.0 libbrotli1 libbsd0 libcpuid16 libcurl3-gnutls libgc1
  libreadline8 libseccomp2 libsodium23 libsqlite3-0)

install() {
  [ "$(cat "$dir/complete" 2>/dev/null)" != "$DCLINT" ] || return 0
  command -v apt-get >/dev/null || fail "needs apt-get (Debian or Ubuntu)"
  rm -rf -- "$dir/packages" "$dir/unpacked" "$dir/node_modules"
  mkdir -p "$dir/packages" "$dir/unpacked"
  (
    cd "$dir/packages"
    retry apt_download "${PACKAGES[@]}"
    for package in *.deb; do dpkg-deb -x "$package" ../unpacked; done
  ) >/dev/null
  rm -r "$dir/packages"
  printf '{"private":true}\n' >"$dir/package.json"
  retry npm install --prefix "$dir" --silent --no-audit --no-fund --ignore-scripts "dclint@$DCLINT"
  printf '%s\n' "$DCLINT" >"$dir/complete"
}

compose() {
  [ ! -e "$dir/docker-compose" ] || return 0
  command -v go >/dev/null || fail "needs Go"
  local source
  source=$(cd / && retry go mod download -json "github.com/docker/compose/v2@v$COMPOSE" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  rm -rf -- "$dir/compose"
  cp -R "$source" "$dir/compose"
  chmod -R u+w "$dir/compose"
  (
    cd "$dir/compose"
    retry go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$COMPOSE" -o ../docker-compose ./cmd
  )
  rm -rf -- "$dir/compose"
}

# run_nix ARGUMENT...
run_nix() {
  local libraries=$dir/unpacked/usr/lib
  mkdir -p "$dir/home"
  HOME=$dir/home LD_LIBRARY_PATH="$libraries/x86_64-linux-gnu:$libraries/nix" "$dir/unpacked/usr/bin/nix" \
    --extra-experimental-features "nix-command flakes" --offline --store "$dir/store" "$@"
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install ;;
  2:compose) dir=$(make_dir "$2"); compose ;;
  [3-9]:nix | [1-9][0-9]:nix) dir=$(make_dir "$2"); shift 2; run_nix "$@" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
