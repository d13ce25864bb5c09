#!/usr/bin/env bash
# A real WebKit (WebKitGTK; Safari and every browser on an iPhone have the same engine), driven by W3C WebDriver.
#
#   webkit.sh install DIR              Debian's packages, and DIR/browser, which the driver starts; needs root or `sudo -n`
#   webkit.sh start DIR RUN [WxH]      prints http://127.0.0.1:PORT; the page is exactly WxH (default 390x844)
#   webkit.sh stop RUN
#
# RUN is a folder for logs and process ids. Each browser has a screen and a driver of its own, because the keyboard belongs to
# one window. A session is asked for with
#   {"browserName": "MiniBrowser", "webkitgtk:browserOptions": {"binary": "DIR/browser", "args": ["--automation"]}}
# GTK_THEME=Adwaita:dark at the start gives a dark page; WK_MOCK=1 WK_ALLOW=1 a microphone and the permission for it.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

packages=(webkit2gtk-driver gir1.2-webkit2-4.1 python3-gi python3-pil xvfb xauth dbus dbus-x11 adwaita-icon-theme)

install_webkit() {
  if ! dpkg-query -W "${packages[@]}" >/dev/null 2>&1; then apt_install "${packages[@]}" || fail "needs apt-get"; fi
  install -m 755 "$here/webkit_browser.py" "$dir/browser"
}

start_webkit() {
  local size=$1 number port
  export WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS=1 WEBKIT_DISABLE_COMPOSITING_MODE=1
  export GTK_THEME=${GTK_THEME:-Adwaita} WK_SIZE=$size LANG=C.UTF-8 NO_AT_BRIDGE=1
  mkfifo -m 600 "$run/display"
  # -displayfd takes the first number that is free.
  setsid Xvfb -displayfd 3 -screen 0 "${size}x24" -nolisten tcp 3>"$run/display" >/dev/null 2>"$run/xvfb.log" &
  echo $! >"$run/xvfb.pid"
  read -r number <"$run/display"
  rm "$run/display"
  # Below the ports that the system assigns by itself.
  until port=$((20000 + RANDOM % 12000)) && ! port_taken "$port"; do :; done
  DISPLAY=:$number setsid dbus-run-session -- WebKitWebDriver --port="$port" >"$run/driver.log" 2>&1 </dev/null &
  echo $! >"$run/driver.pid"
  until port_taken "$port"; do
    kill -0 "$(<"$run/driver.pid")" 2>/dev/null || fail "the driver ended by itself; its log is $run/driver.log"
    sleep 0.1
  done
  echo "$number" >"$run/screen"
  printf 'http://127.0.0.1:%s\n' "$port"
}

stop_webkit() {
  local name
  for name in driver xvfb; do
    [ -f "$run/$name.pid" ] || continue
    kill -- "-$(<"$run/$name.pid")" 2>/dev/null || true
    rm -f "$run/$name.pid"
  done
}

case "$#:${1:-}" in
  2:install) dir=$(make_dir "$2"); install_webkit ;;
  3:start | 4:start) dir=$(find_dir "$2") run=$(make_dir "$3"); start_webkit "${4:-390x844}" ;;
  2:stop) run=$(find_dir "$2"); stop_webkit ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
