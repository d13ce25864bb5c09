# shellcheck shell=bash
# Sourced by .ci/run and by what installs parts. Only downloads and installations are tried again, never tests.

# retry COMMAND...: runs COMMAND up to four times, with pauses of 5, 15 and 45 seconds (RETRY_PAUSE_S sets the first).
# COMMAND runs without `set -e`: a function has to join its steps with &&.
retry() {
  local pause=${RETRY_PAUSE_S:-5} tries=1
  until "$@"; do
    ((tries++ < 4)) || return 1
    printf 'failed, next try in %d s: %s\n' "$pause" "$*" >&2
    sleep "$pause"
    pause=$((pause * 3))
  done
}

# For apt-get: waits up to ten minutes for another apt-get or dpkg to end. Its lists have a lock that it doesn't wait for, so
# parts that are installed at the same time take turns.
# shellcheck disable=SC2034
apt_options=(-qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
# shellcheck disable=SC2034
apt_turn=(flock "/tmp/parlor-apt-$(id -u).lock")

# apt_download PACKAGE...: downloads Debian packages into the current folder, and the package lists if they are missing.
apt_download() {
  local apt=(apt-get "${apt_options[@]}" -o APT::Sandbox::User=root) sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo -n)
  "${apt[@]}" download "$@" 2>/dev/null ||
    { "${apt_turn[@]}" ${sudo[@]+"${sudo[@]}"} "${apt[@]}" update && "${apt[@]}" download "$@"; }
}
