#!/usr/bin/env bash
# Stands in for systemd in a container that has none: does for parlor.service what the unit says about user, folder,
# environment and command, and writes its calls to /calls. Variables in /environment are added.
set -euo pipefail

unit=/usr/lib/systemd/system/parlor.service
running=/run/parlor.pid

value() { sed -n "s/^$1=//p" "$unit"; }
is_active() { [ -e "$running" ] && kill -0 "$(<"$running")" 2>/dev/null; }

start() {
  local user
  ! is_active || return 0
  user=$(value User)
  install -d -o "$user" -g "$(value Group)" -m "$(value StateDirectoryMode)" "/var/lib/$(value StateDirectory)"
  # shellcheck disable=SC2046
  env -i HOME="$(getent passwd "$user" | cut -d : -f 6)" PATH=/usr/bin:/bin $(value Environment) $(cat /environment) \
    setpriv --reuid "$user" --regid "$(value Group)" --init-groups "$(value ExecStart)" >>/log 2>&1 </dev/null &
  echo "$!" >"$running"
}

stop() {
  is_active || return 0
  kill -TERM "$(<"$running")"
  while is_active; do sleep 0.1; done
  rm "$running"
}

words=()
for word; do case $word in -*) ;; *) words+=("$word") ;; esac done
echo "${words[*]}" >>/calls
case ${words[0]} in
  is-active) is_active ;;
  is-enabled) [ -L "/etc/systemd/system/$(value WantedBy).wants/parlor.service" ] && echo enabled ;;
  start) start ;;
  stop) stop ;;
  restart)
    stop
    start
    ;;
esac
