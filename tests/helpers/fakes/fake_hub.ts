/**
 * Fake Hugging Face Hub (docs/protocols/models.md): the hub and its CDN have separate origins, so tests see what crosses from
 * one to the other. Faults are switches; every request is recorded.
 */
import { createHash } from "node:crypto";
import { openHttpServer, send } from "../network/loopback_servers.ts";

/** A repository of the fake hub. */
export interface FakeRepo {
  files: Record<string, Uint8Array>;
  gated?: false | "auto" | "manual";
  license?: string;
  tags?: string[];
  downloads?: number;
  /** Responds to requests without a token as if it didn't exist. */
  isPrivate?: boolean;
}

/** A recorded request. */
export interface HubRequest {
  at: "hub" | "cdn";
  /** With the query. */
  path: string;
  headers: Headers;
}

/** Faults. Numbers count the affected requests. */
export interface HubFaults {
  /** The next bodies of the CDN break off after so many bytes each. */
  cutAfter: number[];
  /** The CDN ignores ranges. */
  ignoreRanges: number;
  /** The CDN responds with 403, as for an expired signature. */
  expired: number;
  /** The CDN answers 416. */
  unsatisfiable: number;
  /** The hub answers the next resolves with this status, without a body. */
  failing: number[];
  /** The hub answers the next resolves 429. */
  rateLimited: number;
  /** The CDN compresses without being asked. */
  isPacked: boolean;
  /** The CDN leaves Content-Length out and sends in chunks. */
  isChunked: boolean;
  /** The CDN sends other bytes than the hub's list says. */
  isCorrupt: boolean;
  /** The CDN's bodies never end. */
  isEndless: boolean;
  /** The CDN's bodies stop before their end without a cut in the head: Content-Length says so, too. */
  isShort: boolean;
  /** Names of the CDN's files, which change with their content. */
  etag: string;
  /** The CDN waits for this promise after a number of bytes. */
  hold?: { afterBytes: number; until: Promise<void> };
  /** Where resolves lead instead of the CDN. */
  redirectTo?: string;
  /** Origin that stands in `Link`. */
  linkOrigin?: string;
}

export interface FakeHub extends AsyncDisposable {
  /** `http://127.0.0.2:PORT` */
  readonly url: string;
  /** `http://127.0.0.3:PORT` */
  readonly cdnUrl: string;
  readonly repos: Record<string, FakeRepo>;
  readonly requests: HubRequest[];
  readonly faults: HubFaults;
  /** The commit that `main` means now. */
  commit: string;
  /** Valid tokens. Those with `true` can read gated repositories. */
  readonly tokens: Record<string, boolean>;
  /** Requests for the bytes of files, at the CDN. */
  transfers(): HubRequest[];
  /** Resolves when that many transfers have started. */
  untilTransfers(count: number): Promise<void>;
}

const [HUB_ADDRESS, CDN_ADDRESS] = ["127.0.0.2", "127.0.0.3"];
const TREE_PAGE = 2;
/** Files above this lie in large-file storage. */
const LARGE_BYTES = 1024;

/** Returns the SHA-256 in the hub's format. */
export function sha256(bytes: Uint8Array): string {
  return remembered(bytes, "sha256", () => createHash("sha256").update(bytes).digest("hex"));
}

/** Files of this size are hashed once: no test changes them in place, and each answer of the hub names their hash. */
const REMEMBERED_BYTES = 16 * 1024 * 1024;
const knownHashes = new WeakMap<Uint8Array, Map<string, string>>();

function remembered(bytes: Uint8Array, kind: string, hash: () => string): string {
  if (bytes.length < REMEMBERED_BYTES) return hash();
  const known = knownHashes.get(bytes) ?? new Map<string, string>();
  const found = known.get(kind) ?? hash();
  knownHashes.set(bytes, known.set(kind, found));
  return found;
}

/** Starts the fake hub. */
export function openFakeHub(repos: Record<string, FakeRepo>): FakeHub {
  const requests: HubRequest[] = [];
  const waiting = new Set<() => void>();
  const faults: HubFaults = {
    cutAfter: [],
    ignoreRanges: 0,
    expired: 0,
    unsatisfiable: 0,
    failing: [],
    rateLimited: 0,
    isPacked: false,
    isChunked: false,
    isCorrupt: false,
    isEndless: false,
    isShort: false,
    etag: "e1",
  };
  const record = (at: "hub" | "cdn", head: string) => {
    const [first = "", ...lines] = head.split("\r\n");
    const headers = new Headers();
    for (const line of lines) {
      const at = line.indexOf(":");
      if (at > 0) headers.append(line.slice(0, at), line.slice(at + 1).trim());
    }
    const request: HubRequest = { at, path: first.split(" ")[1] ?? "", headers };
    requests.push(request);
    for (const look of waiting) look();
    return request;
  };
  const tokens: Record<string, boolean> = {};
  const hubServer = openHttpServer((conn, head) => answerHub(conn, record("hub", head)), { hostname: HUB_ADDRESS });
  const cdnServer = openHttpServer((conn, head) => answerCdn(conn, record("cdn", head)), { hostname: CDN_ADDRESS });
  const open = [hubServer, cdnServer];
  const transfers = () => requests.filter(({ at }) => at === "cdn");
  const hub: FakeHub = {
    repos,
    requests,
    faults,
    tokens,
    transfers,
    url: `http://${HUB_ADDRESS}:${hubServer.port}`,
    cdnUrl: `http://${CDN_ADDRESS}:${cdnServer.port}`,
    commit: "1".repeat(40),
    untilTransfers(count) {
      return new Promise((resolve) => {
        const look = () => {
          if (transfers().length < count) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      });
    },
    async [Symbol.asyncDispose]() {
      // A test may close the hub early.
      await Promise.all(open.splice(0).map((server) => server[Symbol.asyncDispose]()));
    },
  };
  return hub;

  async function answerHub(conn: Deno.Conn, { path, headers }: HubRequest): Promise<void> {
    const url = new URL(path, hub.url);
    const token = headers.get("authorization")?.replace(/^Bearer /, "");
    if (token !== undefined && !(token in tokens)) {
      return await json(conn, 401, { error: "Invalid credentials in Authorization header" });
    }
    if (url.pathname === "/api/models") return await search(conn, url);
    const cached = /^\/api\/resolve-cache\/models\/(.+)\/([0-9a-f]{40})\/([^/]+)$/.exec(url.pathname);
    if (cached !== null) return await small(conn, cached[1]!, decodeURIComponent(cached[3]!), headers);
    const [, repo, rest] = /^\/api\/models\/([^/]+\/[^/]+)(\/.*)?$/.exec(url.pathname) ?? [];
    if (repo !== undefined) return await detail(conn, url, repo, rest ?? "", token);
    const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(url.pathname);
    if (resolve !== null) {
      const file = resolve[3]!.split("/").map(decodeURIComponent).join("/");
      return await resolved(conn, resolve[1]!, resolve[2]!, file, token);
    }
    await json(conn, 404, { error: "Not found" });
  }

  async function search(conn: Deno.Conn, url: URL): Promise<void> {
    const text = url.searchParams.get("search")?.toLowerCase() ?? "";
    const filter = url.searchParams.get("filter");
    const found = Object.entries(repos)
      .filter(([id, { tags = ["gguf"] }]) => id.toLowerCase().includes(text) && (!filter || tags.includes(filter)))
      .sort(([, a], [, b]) => (b.downloads ?? 0) - (a.downloads ?? 0));
    const limit = Number(url.searchParams.get("limit") ?? 10);
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const items = found.slice(from, from + limit).map(([id, repo]) => ({
      _id: id,
      id,
      modelId: id,
      downloads: repo.downloads ?? 0,
      likes: 3,
      gated: repo.gated ?? false,
      lastModified: "2026-08-01T10:00:00.000Z",
      private: false,
      tags: [...repo.tags ?? ["gguf"], ...repo.license === undefined ? [] : [`license:${repo.license}`]],
    }));
    await json(conn, 200, items, from + limit < found.length ? nextLink(url, from + limit) : {});
  }

  function nextLink(url: URL, cursor: number): Record<string, string> {
    const next = new URL(url);
    next.searchParams.set("cursor", String(cursor));
    return { link: `<${faults.linkOrigin ?? hub.url}${next.pathname}${next.search}>; rel="next"` };
  }

  async function detail(conn: Deno.Conn, url: URL, id: string, rest: string, token: string | undefined): Promise<void> {
    const repo = repos[id];
    if (repo === undefined || (repo.isPrivate && token === undefined)) {
      const status = token === undefined ? 401 : 404;
      return await json(conn, status, { error: "Repository not found" }, { "x-error-code": "RepoNotFound" });
    }
    const tree = /^\/tree\/([^/]+)$/.exec(rest);
    if (tree === null) {
      const siblings = Object.keys(repo.files).map((rfilename) => ({ rfilename }));
      const tags = repo.license === undefined ? [] : [`license:${repo.license}`];
      return await json(conn, 200, { id, sha: hub.commit, gated: repo.gated ?? false, siblings, tags });
    }
    if (tree[1] !== hub.commit) {
      return await json(conn, 404, { error: "Invalid rev" }, { "x-error-code": "RevisionNotFound" });
    }
    const entries = Object.entries(repo.files).map(([path, bytes]) => ({
      type: "file",
      oid: gitOid(bytes),
      size: bytes.length,
      path,
      ...(bytes.length > LARGE_BYTES && { lfs: { oid: sha256(bytes), size: bytes.length, pointerSize: 135 } }),
    }));
    const folders = [
      ...new Set(Object.keys(repo.files).filter((path) => path.includes("/")).map((path) => path.split("/")[0]!)),
    ];
    const all = [...folders.map((path) => ({ type: "directory", oid: "0".repeat(40), size: 0, path })), ...entries];
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const next = from + TREE_PAGE < all.length ? nextLink(url, from + TREE_PAGE) : {};
    await json(conn, 200, all.slice(from, from + TREE_PAGE), next);
  }

  async function resolved(conn: Deno.Conn, id: string, revision: string, path: string, token?: string): Promise<void> {
    const bytes = repos[id]?.files[path];
    const { gated } = repos[id] ?? {};
    const failing = faults.failing.shift();
    // Stands on every answer of the hub's: most of the window is left, and it ends in five minutes.
    const unspent = { ratelimit: '"resolvers";r=2999;t=300' };
    if (failing !== undefined) return await head(conn, failing, { "content-length": "0", ...unspent });
    if (faults.rateLimited > 0) {
      faults.rateLimited--;
      return await json(conn, 429, { error: "Too many" }, { ratelimit: '"resolvers";r=0;t=0' });
    }
    if (gated && (token === undefined || !tokens[token])) {
      const status = token === undefined ? 401 : 403;
      return await json(conn, status, { error: "Access restricted" }, { "x-error-code": "GatedRepo" });
    }
    if (revision !== "main" && !/^[0-9a-f]{40}$/.test(revision)) {
      return await json(conn, 404, { error: "Invalid rev" }, { "x-error-code": "RevisionNotFound" });
    }
    if (bytes === undefined) {
      return await json(conn, 404, { error: "Entry not found" }, { "x-error-code": "EntryNotFound" });
    }
    const common = { "x-repo-commit": hub.commit, "content-length": "0" };
    if (bytes.length <= LARGE_BYTES) {
      const location = `/api/resolve-cache/models/${id}/${hub.commit}/${encodeURIComponent(path)}?etag=x`;
      return await head(conn, 307, { ...common, location, etag: `"${gitOid(bytes)}"` });
    }
    await head(conn, 302, {
      ...common,
      location: faults.redirectTo ??
        `${hub.cdnUrl}/${sha256(bytes)}/${encodeURIComponent(id)}/${encodeURIComponent(path)}?sig=1`,
      "x-linked-size": String(bytes.length),
      "x-linked-etag": `"${sha256(bytes)}"`,
    });
  }

  async function small(conn: Deno.Conn, id: string, path: string, headers: Headers): Promise<void> {
    const bytes = repos[id]?.files[path];
    if (bytes === undefined) return await json(conn, 404, { error: "Entry not found" });
    if (headers.get("accept-encoding") === "identity") {
      await head(conn, 200, { "content-length": String(bytes.length), etag: `"${gitOid(bytes)}"` });
      return await send(conn, bytes);
    }
    const packed = new Response(new Blob([bytes.slice()]).stream().pipeThrough(new CompressionStream("gzip")));
    await head(conn, 200, { "content-encoding": "gzip" });
    await send(conn, new Uint8Array(await packed.arrayBuffer()));
  }

  async function answerCdn(conn: Deno.Conn, { path, headers }: HubRequest): Promise<void> {
    const url = new URL(path, hub.cdnUrl);
    const [, , id = "", name = ""] = url.pathname.split("/").map(decodeURIComponent);
    const listed = repos[id]?.files[name];
    if (listed === undefined || url.searchParams.get("sig") === null) return await json(conn, 403, {});
    if (headers.has("authorization")) return await json(conn, 400, { error: "Only one auth mechanism allowed" });
    if (faults.expired-- > 0) return await json(conn, 403, { error: "Request has expired" });
    if (faults.unsatisfiable-- > 0) return await head(conn, 416, { "content-length": "0" });
    const content = faults.isCorrupt ? withLastBitWrong(listed) : listed;
    const bytes = faults.isShort ? content.subarray(0, content.length - 5) : content;
    const isSame = headers.get("if-range") === null || headers.get("if-range") === `"${faults.etag}"`;
    const range = /^bytes=(\d+)-$/.exec(headers.get("range") ?? "");
    const isRanged = range !== null && isSame && faults.ignoreRanges-- <= 0;
    const from = isRanged ? Number(range[1]) : 0;
    const rest = bytes.subarray(from);
    const framing: Record<string, string> = faults.isChunked || faults.isEndless
      ? { "transfer-encoding": "chunked" }
      : { "content-length": String(rest.length) };
    const ranged: Record<string, string> = isRanged
      ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` }
      : {};
    await head(conn, isRanged ? 206 : 200, {
      ...framing,
      ...ranged,
      ...(faults.isPacked && { "content-encoding": "gzip" }),
      etag: `"${faults.etag}"`,
      "accept-ranges": "bytes",
    });
    await body(conn, rest, "transfer-encoding" in framing);
  }

  async function body(conn: Deno.Conn, rest: Uint8Array, isChunked: boolean): Promise<void> {
    const pass = async (bytes: Uint8Array) => {
      if (isChunked && bytes.length > 0) await send(conn, `${bytes.length.toString(16)}\r\n`);
      await send(conn, bytes);
      if (isChunked && bytes.length > 0) await send(conn, "\r\n");
    };
    const cut = faults.cutAfter.shift();
    if (cut !== undefined) {
      await pass(rest.subarray(0, cut));
      if (cut < rest.length) throw new Error("The line is cut"); // The connection's handler closes it.
    }
    const { hold } = faults;
    if (hold !== undefined && cut === undefined) {
      await pass(rest.subarray(0, hold.afterBytes));
      await hold.until;
      rest = rest.subarray(hold.afterBytes);
    }
    for (let at = 0; at < rest.length; at += 16_384) await pass(rest.subarray(at, at + 16_384));
    while (faults.isEndless) await pass(new Uint8Array(16_384));
    if (isChunked) await send(conn, "0\r\n\r\n");
  }
}

function withLastBitWrong(bytes: Uint8Array): Uint8Array {
  const wrong = bytes.slice();
  wrong[wrong.length - 1]! ^= 1;
  return wrong;
}

function gitOid(bytes: Uint8Array): string {
  return remembered(
    bytes,
    "git",
    () => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex"),
  );
}

async function head(conn: Deno.Conn, status: number, headers: Record<string, string>): Promise<void> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  await send(conn, `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`);
}

async function json(
  conn: Deno.Conn,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): Promise<void> {
  const body = new TextEncoder().encode(JSON.stringify(value));
  const own = { "content-type": "application/json", "content-length": String(body.length) };
  await head(conn, status, { ...own, ...headers });
  await send(conn, body);
}
