#!/bin/sh
# Installs, upgrades or removes Parlor on Linux and macOS, from the files of a release. It never changes the data folder.
#
#   curl -fsSL ADDRESS/install.sh | sh                      installs for this user, in ~/.local/bin
#   curl -fsSL ADDRESS/install.sh | sudo sh                 installs in /usr/local/bin, with a service if there is systemd
#   curl -fsSL ADDRESS/install.sh | sh -s -- --uninstall    removes what it installed, but not the data
#
# Needs curl or wget, and sha256sum, shasum or openssl. DESTDIR is put before each path outside of the home folder.
set -eu

# Address of the folder with the files of the release. A release has its own here; in the source it's given with --from.
DOWNLOAD=''

say() { printf '%s\n' "$*"; }
fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

usage() {
  cat <<'END'
Installs Parlor, or upgrades it.

  --from URL     folder with the files of the release
  --uninstall    removes the program and the service; the data stays
  --no-service   as root: installs only the program
  --yes          doesn't ask
END
}

# Everything is in functions, so that a download that breaks off runs nothing.
main() {
  from=$DOWNLOAD uninstall='' with_service=yes ask=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --from)
        [ $# -gt 1 ] || fail "--from needs a URL"
        from=$2
        shift
        ;;
      --uninstall) uninstall=yes ;;
      --no-service) with_service='' ;;
      --yes) ask='' ;;
      --help | -h)
        usage
        exit 0
        ;;
      *) fail "Unknown option \"$1\". See --help" ;;
    esac
    shift
  done

  root=${DESTDIR:-}
  service=''
  if [ "$(id -u)" = 0 ]; then
    folder=$root/usr/local/bin
    data=/var/lib/parlor
    unit=$root/etc/systemd/system/parlor.service
    # https://www.freedesktop.org/software/systemd/man/latest/sd_booted.html
    if [ -n "$with_service" ] && [ -d "$root/run/systemd/system" ] && has systemctl; then service=yes; fi
  else
    folder=${HOME:?}/.local/bin
    unit=''
  fi
  program=$folder/parlor
  if [ -n "$uninstall" ]; then remove; else install; fi
}

# Asks on the terminal, because standard input may be this script. Without a terminal, nobody can answer.
confirm() {
  if [ -z "$ask" ] || ! (: </dev/tty) 2>/dev/null; then return 0; fi
  printf 'Continue? [Y/n] ' >/dev/tty
  read -r answer </dev/tty || answer=n
  case $answer in '' | [Yy]*) ;; *) fail "Nothing was changed" ;; esac
}

find_file() {
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=macos ;;
    *) fail "There is no executable for $(uname -s). On Windows, see docs/guide/install.md" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) machine=x64 ;;
    aarch64 | arm64) machine=arm64 ;;
    *) fail "There is no executable for the processor $(uname -m)" ;;
  esac
  file=parlor-$system-$machine
}

# download NAME: saves a file of the release in the temporary folder.
download() {
  if has curl; then
    curl --fail --silent --show-error --location --proto "$protocols" --output "$temporary/$1" "$from/$1"
  elif has wget; then
    wget --quiet --output-document="$temporary/$1" "$from/$1"
  else
    fail "Needs curl or wget"
  fi || fail "Can't download $from/$1"
}

# verify NAME: compares a downloaded file with its line in SHA256SUMS.
verify() {
  expected=$(awk -v name="$1" '$2 == name { print $1 }' "$temporary/SHA256SUMS")
  [ -n "$expected" ] || fail "SHA256SUMS has no checksum of $1. Nothing was changed"
  if has sha256sum; then
    found=$(sha256sum <"$temporary/$1")
  elif has shasum; then
    found=$(shasum -a 256 <"$temporary/$1")
  elif has openssl; then
    found=$(openssl dgst -sha256 -r <"$temporary/$1")
  else
    fail "Needs sha256sum, shasum or openssl"
  fi
  [ "${found%% *}" = "$expected" ] || fail "The checksum of $1 doesn't match. Nothing was changed"
}

install() {
  from=${from%/}
  case $from in
    '') fail "This copy names no release. Give the address of its files: --from URL" ;;
    https://*) protocols='=https' ;;
    # On this machine, for tests.
    http://127.0.0.1[:/]*) protocols='=http' ;;
    *) fail "--from must start with https://" ;;
  esac
  find_file
  previous=$("$program" --version 2>/dev/null) || previous=''
  say "Installs Parlor${previous:+, in place of $previous}:"
  say "  download  $from/$file, verified with SHA256SUMS"
  say "  program   $program"
  [ -z "$service" ] || say "  service   $unit, started now and with the machine"
  if [ "$(id -u)" = 0 ]; then
    say "Its data is in $data. This script never changes it."
  else
    say "Its data is in your home folder. This script never changes it."
  fi
  confirm

  temporary=$(mktemp -d)
  trap 'rm -rf "$temporary"' EXIT
  trap 'exit 1' HUP INT TERM
  download SHA256SUMS
  download "$file"
  verify "$file"
  if [ -n "$service" ]; then
    download parlor.service
    verify parlor.service
  fi
  mkdir -p "$folder"
  # Beside the old file and renamed, so that a running server keeps its own, and no start finds half of one.
  fresh=$folder/.parlor.new
  trap 'rm -rf "$temporary" "$fresh"' EXIT
  cp "$temporary/$file" "$fresh"
  chmod 755 "$fresh"
  version=$("$fresh" --version) ||
    fail "The program doesn't run on this system. It needs glibc (not Alpine's musl). Nothing was changed; see Docker"
  mv "$fresh" "$program"
  say "Installed $version in $program"
  if [ -n "$service" ]; then start_service; else explain_start; fi
}

start_service() {
  if [ -f "$unit" ] && ! cmp -s "$unit" "$temporary/parlor.service"; then
    say "$unit differs from the one of this release, so it stays as it is"
  else
    mkdir -p "${unit%/*}"
    cp "$temporary/parlor.service" "$unit"
    chmod 644 "$unit"
  fi
  systemctl daemon-reload
  systemctl enable --quiet parlor
  # Replies that are being written go on after the restart.
  systemctl restart parlor
  say "The service runs. Open http://localhost:8787 on this machine. Its log: journalctl --unit parlor"
}

explain_start() {
  case :$PATH: in
    *:"$folder":*) say "Run parlor, and open http://localhost:8787" ;;
    *) say "Run $program, and open http://localhost:8787. To call it parlor, add $folder to PATH" ;;
  esac
  [ -z "$previous" ] || say "If a server is running, restart it: $program stop ends it"
}

remove() {
  if [ ! -f "$program" ] && { [ -z "$unit" ] || [ ! -f "$unit" ]; }; then
    say "Parlor isn't installed in $folder"
    exit 0
  fi
  say "Removes Parlor:"
  [ ! -f "$program" ] || say "  program   $program"
  if [ -n "$unit" ] && [ -f "$unit" ]; then say "  service   $unit, stopped first"; else unit=''; fi
  say "The data stays where it is."
  confirm
  if [ -n "$unit" ]; then
    if [ -n "$service" ]; then systemctl disable --quiet --now parlor; fi
    rm -f "$unit"
    if [ -n "$service" ]; then systemctl daemon-reload; fi
  elif [ -f "$program" ]; then
    # Ends a server of this user; 3 means that there is none.
    "$program" stop || [ $? = 3 ] || fail "Can't stop the server. Nothing was removed"
  fi
  rm -f "$program"
  say "Removed. To delete the data, too, remove its folder yourself${data:+: $data}"
}

main "$@"
