/**
 * Everything that leaves this process goes through services/http, which resolves a name once, judges its addresses and
 * connects to one of these. Only the files named here open connections in another way.
 */
import { join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname!, "..");
const OPENS_CONNECTIONS =
  /(?<![.#\w])fetch\(|\bglobalThis\.fetch\b|createHttpClient\(|\bnew \(?(?:WebSocket|WebSocketStream|EventSource)\b|\bDeno\.(?:connect|connectTls|startTls|resolveDns)\(|\bfrom "node:(?:http|https|http2|net|tls|dgram|dns\/promises|dns)"|\bimport\("node:(?:http|https|http2|net|tls|dgram)"\)/g;
/** Files, what they may use, and why. */
const ALLOWED: Record<string, { may: string[]; why: string }> = {
  "services/http/http_client.ts": { may: ["fetch(", "new (WebSocket", 'from "node:net"'], why: "owner's class" },
  "services/http/owner_connections.ts": { may: ["createHttpClient("], why: "owner's class" },
  "services/http/guard/guarded_fetch.ts": { may: ["fetch(", "createHttpClient("], why: "public class" },
  "services/http/guard/guarded_get.ts": { may: ["Deno.startTls("], why: "public class" },
  "services/http/guard/sockets.ts": { may: ["Deno.connect("], why: "connects to judged addresses" },
  "services/http/guard/target_policy.ts": { may: ['from "node:dns/promises"'], why: "resolves" },
  "services/diagnostics/local_server.ts": {
    may: ["fetch(", "createHttpClient(", 'from "node:http"', 'from "node:tls"'],
    why: "commands that ask the server of their own data folder",
  },
  "services/tailnet/local_api.ts": { may: ["fetch(", "createHttpClient("], why: "Unix socket of the own node" },
  "services/tailnet/node_process.ts": { may: ["Deno.connect("], why: "Unix socket of the own node" },
};

async function* listSources(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory) yield* listSources(path);
    else if (name.endsWith(".ts")) yield path;
  }
}

/** Lists what a text uses to open connections. Comments and methods named `fetch` don't count. */
function findConnections(text: string): string[] {
  const code = text.replace(/\/\*[^]*?\*\//g, "").replace(/(?<!:)\/\/.*$/gm, "").replace(
    /^\s*(?:async )?fetch\(.*[{;,]$/gm,
    "",
  );
  return [...new Set(code.match(OPENS_CONNECTIONS) ?? [])];
}

test("every request goes through the clients of services/http", { tags: ["J07"] }, async () => {
  const found: Record<string, string[]> = {};
  for (const folder of ["services", "routes", "middleware"]) {
    for await (const path of listSources(join(ROOT, folder))) {
      const used = findConnections(await Deno.readTextFile(path));
      if (used.length > 0) found[relative(ROOT, path)] = used.sort();
    }
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(ALLOWED).map(([path, { may }]) => [path, [...may].sort()])));
});

test.each([
  ["await fetch(url)", ["fetch("]],
  ["const x = { send: (u) => fetch(u) }", ["fetch("]],
  ['new WebSocket("ws://x")', ["new WebSocket"]],
  ['import { connect } from "node:tls";', ['from "node:tls"']],
  ["this.#fetch(url); guard.fetch(url); /* fetch(url) */", []],
  ["  async fetch(url, init) {", []],
])("finds in %j: %j", (text, used) => {
  expect(findConnections(text)).toEqual(used);
});
