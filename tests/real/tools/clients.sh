#!/usr/bin/env bash
# Programs that use OpenAI's APIs: Codex CLI, the Vercel AI SDK, OpenAI's agents and client for Node (DIR/npm), llm,
# LiteLLM and aider (DIR/<name>, each in an environment of its own).
#
#   clients.sh install DIR   the packages from npm and PyPI; needs Node 20 or later and npm
#
# Licence: Apache-2.0 (codex, ai, @ai-sdk/openai, llm, aider), MIT (@openai/agents, LiteLLM).
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
. "$here/real_server.sh"

packages=(@openai/agents@0.20.0 @openai/codex@0.171.0 @ai-sdk/openai@4.0.118 ai@7.0.173 openai@7.57.0 zod@4.6.7)
programs=(llm litellm aider)

install_npm() {
  [ "$(cat "$dir/npm/installed" 2>/dev/null)" = "${packages[*]}" ] && return
  rm -rf "$dir/npm"
  mkdir -p "$dir/npm"
  printf '{"private":true}\n' >"$dir/npm/package.json"
  # The AI SDK asks for a newer Node; it runs on Deno.
  retry npm install --prefix "$dir/npm" --silent --no-audit --no-fund --ignore-scripts --force --save-exact "${packages[@]}"
  printf '%s\n' "${packages[*]}" >"$dir/npm/installed"
}

# Wheels only: nothing is compiled, no setup.py runs. Every dependency is named.
install_python() {
  local pins=$here/clients/$1.txt
  cmp -s "$pins" "$dir/$1/installed" && return
  make_venv "$dir/$1"
  retry "$dir/$1/bin/python" -m pip install -q --no-deps --only-binary :all: -r "$pins"
  cp "$pins" "$dir/$1/installed"
}

case "$#:${1:-}" in
  2:install)
    dir=$(make_dir "$2")
    install_npm
    for program in "${programs[@]}"; do install_python "$program"; done
    ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
