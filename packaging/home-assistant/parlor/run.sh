#!/bin/bash
# Starts Parlor with the options that the Supervisor wrote to /data/options.json. The image has no jq.
set -euo pipefail

options=$(tr -d '\n' </data/options.json)
# text NAME: the value of a text, number or truth value.
text() { sed -nE "s/.*\"$1\" *: *\"?([^\",}]*)\"?.*/\1/p" <<<"$options"; }
# list NAME: the items of a list, with commas.
list() { sed -nE "s/.*\"$1\" *: *\[([^]]*)\].*/\1/p" <<<"$options" | tr -d ' "'; }

install --directory --owner="$PUID" --group="$PGID" --mode=0700 "$PARLOR_DATA_DIR"
hosts=$(list allowed_hosts)
export PARLOR_ALLOWED_HOSTS="localhost,127.0.0.1${hosts:+,$hosts}"
PARLOR_TRUSTED_PROXIES=$(list trusted_proxies)
export PARLOR_TRUSTED_PROXIES
if [ "$(text ssl)" = true ]; then
  # Only root can read the key. /tmp is in memory.
  install --directory --owner="$PUID" --group="$PGID" --mode=0700 /tmp/tls
  for name in certfile keyfile; do
    file=/ssl/$(text "$name")
    [ -r "$file" ] || { echo "There is no $file. Set $name, or turn ssl off and use a reverse proxy" >&2; exit 1; }
    install --owner="$PUID" --group="$PGID" --mode=0400 "$file" "/tmp/tls/$name.pem"
  done
  export PARLOR_TLS_CERT=/tmp/tls/certfile.pem PARLOR_TLS_KEY=/tmp/tls/keyfile.pem
fi
exec parlor "$@"
