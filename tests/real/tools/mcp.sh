#!/usr/bin/env bash
# MCP servers and the conformance tests of the Model Context Protocol, from npm.
#
#   mcp.sh install DIR   puts the published packages under DIR/node_modules; needs Node 20 or later and npm
#
# Licence: MIT (conformance, server-everything, server-filesystem, server-memory).
set -euo pipefail
. "$(dirname -- "${BASH_SOURCE[0]}")/retry.sh"

packages=(
  @modelcontextprotocol/conformance@0.1.16
  @modelcontextprotocol/server-everything@2026.8.31
  @modelcontextprotocol/server-filesystem@2026.8.31
  @modelcontextprotocol/server-memory@2026.8.31
)
verb=${1:?verb: install}
dir=$(mkdir -p "${2:?directory}" && cd "$2" && pwd)

case $verb in
install)
  if [ "$(cat "$dir/installed" 2>/dev/null)" != "${packages[*]}" ]; then
    rm -rf "$dir/node_modules"
    printf '{"private":true}\n' >"$dir/package.json"
    retry npm install --prefix "$dir" --silent --no-audit --no-fund --ignore-scripts --save-exact "${packages[@]}"
    printf '%s\n' "${packages[*]}" >"$dir/installed"
  fi
  echo "MCP packages: $(cat "$dir/installed")"
  ;;
*) echo "unknown verb: $verb" >&2; exit 2 ;;
esac
