#!/usr/bin/env bash
# Tries an image as compose.yaml runs it: it becomes healthy, answers, keeps its data over a restart, and stops cleanly.
#
#   build/smoke_container.sh IMAGE
set -euo pipefail

image=${1:?image}
name=parlor-smoke-$$
options=(--publish 127.0.0.1::8787 --volume "$name:/data" --init --read-only --tmpfs /tmp --cap-drop ALL
  --security-opt no-new-privileges:true)
trap 'docker logs "$name" || true; docker rm --force --volumes "$name" >/dev/null; docker volume rm "$name" >/dev/null' EXIT

# wait_healthy: fails when the health check does, or after a minute.
wait_healthy() {
  local state=starting tries=0
  while [ "$state" = starting ]; do
    tries=$((tries + 1))
    [ "$tries" -le 60 ] || break
    sleep 1
    state=$(docker inspect --format '{{.State.Health.Status}}' "$name")
  done
  [ "$state" = healthy ] || { echo "the container is $state" >&2; return 1; }
}

docker run --detach --name "$name" "${options[@]}" "$image" >/dev/null
wait_healthy
address=$(docker port "$name" 8787/tcp | head -n 1)
curl --fail --silent --show-error --output /dev/null "http://localhost:${address##*:}/healthz"
curl --fail --silent --show-error "http://localhost:${address##*:}/api/auth/status" | grep --quiet '"passkeys_supported":true'
key=$(docker exec "$name" sha256sum /data/storage-key)
docker restart "$name" >/dev/null
wait_healthy
[ "$(docker exec "$name" sha256sum /data/storage-key)" = "$key" ]
docker stop "$name" >/dev/null
code=$(docker inspect --format '{{.State.ExitCode}}' "$name")
[ "$code" = 0 ] || { echo "the container ended with code $code" >&2; exit 1; }
echo "$image works"
