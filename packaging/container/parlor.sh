#!/bin/sh
# The command "parlor" of the image. Runs the executable as the user that the container has, whatever its uid.
#
# If the container is started as root, PUID and PGID name the user to run as, which then owns the data folder. This also
# applies to "docker exec", so no command leaves files of root there. Needs setpriv (util-linux).
set -eu

executable=/usr/local/lib/parlor/parlor
data=${PARLOR_DATA_DIR:-/data}

fail() {
  echo "parlor: $*" >&2
  exit 1
}

# Reports whether the folder is empty or Parlor's, so that a mistyped path doesn't give other files a new owner.
is_data_folder() {
  for name in app.db storage-key session-key credentials.json tokens.json config.toml lock; do
    [ ! -e "$1/$name" ] || return 0
  done
  [ -z "$(find "$1" -mindepth 1 -maxdepth 1 ! -name lost+found -print -quit 2>&1)" ]
}

[ -n "${PUID:-}${PGID:-}" ] || exec "$executable" "$@"
own=$(id -u):$(id -g)
uid=${PUID:-10001}
gid=${PGID:-$uid}
if [ "${own%:*}" != 0 ]; then
  [ "$own" = "$uid:$gid" ] ||
    echo "parlor: PUID and PGID don't count, because the container runs as $own. Set user: \"$uid:$gid\" instead" >&2
  exec "$executable" "$@"
fi
case "$uid$gid" in
  *[!0-9]*) fail "PUID and PGID must be numbers, not \"${PUID:-}\" and \"${PGID:-}\"" ;;
esac
[ "$uid:$gid" != 0:0 ] || exec "$executable" "$@"

# The groups of group_add, such as those of a graphics card.
groups=$(id -G | tr ' ' '\n' | grep -vx 0 | paste -s -d , || true)
if [ -n "$groups" ]; then groups=--groups=$groups; else groups=--clear-groups; fi
become() { setpriv --reuid="$uid" --regid="$gid" "$groups" --no-new-privs "$@"; }
become true 2>/dev/null ||
  fail "Can't run as PUID $uid, PGID $gid: the container lacks the capabilities SETUID and SETGID." \
    "Add them (cap_add), or set user: \"$uid:$gid\" instead"
# Where this fails, Parlor says what it can't write, and as which user.
if [ -d "$data" ] && [ "$(stat -c %u "$data")" != "$uid" ] && is_data_folder "$data"; then
  chown -R -h "$uid:$gid" "$data" 2>/dev/null || true
fi
exec setpriv --reuid="$uid" --regid="$gid" "$groups" --no-new-privs "$executable" "$@"
