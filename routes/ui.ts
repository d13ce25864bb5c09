/** Everything outside /api: the page, from its current build, and the health check. */
import { Hono } from "hono";
import type { AppContext, Env } from "../middleware/env.ts";
import type { RouteFacts } from "../middleware/route_table.ts";
import { AppError } from "../services/errors.ts";
import type { BodyLimits } from "./http/route_facts.ts";

/** Path of the health check for containers and proxies. It needs no authentication and responds with 204. */
export const HEALTHZ_PATH = "/healthz";

/** The health check in the OpenAPI document. It has no schema, so that it works before the API is loaded. */
export const healthzRoute = {
  method: "get" as const,
  path: HEALTHZ_PATH,
  tags: ["health"],
  summary: "Check whether the process responds; needs no authentication",
  responses: { 204: { description: "The process responds" } },
};

/** Returns what the middleware needs to know about the health check. */
export function healthzFacts(limits: BodyLimits): RouteFacts {
  return {
    method: "GET",
    pattern: HEALTHZ_PATH,
    bodyTypes: [],
    isBodyRequired: false,
    bodyLimitBytes: limits.default,
    isBodyStreamed: false,
  };
}

/**
 * Content Security Policy of the page: nothing inline, nothing from other origins, no plug-ins, and no text that becomes
 * HTML or a script except by the page's own policy (static/src/trusted_types.ts).
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "font-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "frame-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types parlor",
].join("; ");

/**
 * Policy of the frame that draws diagrams: a sandbox without an origin that can't load anything. Its page contains the
 * hash of the only script that may run.
 */
const DIAGRAM_POLICY = [
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  "frame-ancestors 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "sandbox allow-scripts",
].join("; ");

const CONTENT_TYPES: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
  webmanifest: "application/manifest+json",
};

/**
 * Target of the share menu. The page's service worker answers these requests on the device; one that arrives here came
 * before the worker was ready, and its body isn't read.
 */
const SHARE_PATH = "/share";

/** Compressed copies, preferred ones first. */
const ENCODINGS = [{ name: "br", extension: ".br" }, { name: "gzip", extension: ".gz" }];

/** Asset names contain the hash of the content, so the content of a name never changes. */
const FOREVER = "public, max-age=31536000, immutable";

/** Files with the same name in every build: a service worker controls only pages in its own folder and below. */
const FIXED_NAMES = ["service_worker.js", "manifest.webmanifest"];

/** A plain file name of a known type. Compressed copies have no address of their own. */
const ASSET_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]*\.(?:js|css|svg|png|woff2|webmanifest)$/;

/**
 * Serves the page. Files are read for each request: they're few, and browsers request each one once.
 *
 * @param folder Path of a build; see ui_folder.ts. Missing files get 404; a missing page is `not_available`, with
 *   instructions to build it
 */
export function uiRoutes(folder: string): Hono<Env> {
  const router = new Hono<Env>();
  router.get(HEALTHZ_PATH, (c) => c.body(null, 204));
  router.get("/assets/:name", async (c) => {
    const name = c.req.param("name");
    if (!ASSET_NAME.test(name)) return c.notFound();
    return await respondWithFile(c, `${folder}/assets/${name}`, FOREVER) ?? c.notFound();
  });
  for (const name of FIXED_NAMES) {
    router.get(`/${name}`, async (c) => await respondWithFile(c, `${folder}/${name}`, "no-cache") ?? c.notFound());
  }
  router.get("/diagram.html", async (c) => {
    const frame = await respondWithFile(c, `${folder}/diagram.html`, "no-cache");
    frame?.headers.set("Content-Security-Policy", DIAGRAM_POLICY);
    frame?.headers.set("X-Frame-Options", "SAMEORIGIN");
    return frame ?? c.notFound();
  });
  router.post(SHARE_PATH, (c) => {
    const site = c.req.header("sec-fetch-site") ?? "none";
    if (site !== "none" && site !== "same-origin") {
      throw new AppError("cross_site", "A page on another site can't share content with Parlor");
    }
    return c.redirect(`${SHARE_PATH}?problem=not_ready`, 303);
  });
  router.get("/*", async (c) => {
    if (!isPagePath(c.req.path)) return c.notFound();
    const page = await respondWithFile(c, `${folder}/index.html`, "no-cache");
    if (!page) {
      throw new AppError(
        "not_available",
        `Can't find the page in "${folder}". Build it with "deno task ui" and restart Parlor`,
      );
    }
    return page;
  });
  return router;
}

/** Reads the name of a build, which its page knows, too. Returns `undefined` if there is no page. */
export async function readBuildName(folder: string): Promise<string | undefined> {
  const page = await readFile(`${folder}/index.html`);
  return /<meta name="build" content="(\w+)">/.exec(new TextDecoder().decode(page))?.[1];
}

/** Returns whether a path may be a screen of the page rather than a file or the API. */
function isPagePath(path: string): boolean {
  if (path === "/api" || path.startsWith("/api/")) return false;
  return !path.split("/").at(-1)!.includes(".");
}

/** Responds with a file, compressed if the client accepts it. Returns `undefined` if there is none. */
async function respondWithFile(c: AppContext, path: string, cacheControl: string): Promise<Response | undefined> {
  const accepted = parseAcceptEncoding(c.req.header("accept-encoding") ?? "");
  for (const encoding of [...ENCODINGS.filter(({ name }) => accepted.has(name)), undefined]) {
    const content = await readFile(path + (encoding?.extension ?? ""));
    if (content === undefined) continue;
    const tag = `"${await hashFile(content)}"`;
    const headers = new Headers({
      "Content-Type": CONTENT_TYPES[path.slice(path.lastIndexOf(".") + 1)]!,
      "Cache-Control": cacheControl,
      "Content-Security-Policy": PAGE_POLICY,
      "ETag": tag,
      "Vary": "Accept-Encoding",
    });
    if (encoding) headers.set("Content-Encoding", encoding.name);
    headers.set("Content-Length", String(content.length));
    return new Response(content, { headers });
  }
  return undefined;
}

/** Parses Accept-Encoding. An encoding with quality 0 isn't accepted. @see RFC 9110, section 12.5.3 */
function parseAcceptEncoding(header: string): Set<string> {
  const names = new Set<string>();
  for (const part of header.split(",")) {
    const [name = "", ...parameters] = part.split(";").map((each) => each.trim().toLowerCase());
    if (!parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))) names.add(name);
  }
  return names;
}

async function hashFile(content: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return hash.toBase64({ alphabet: "base64url", omitPadding: true }).slice(0, 22);
}

async function readFile(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return await Deno.readFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Folder of the builds. Inside the executable, the same path leads to the embedded build. */
const UI_BUILDS = `${import.meta.dirname}/../static/dist`;

/** Name of the file that contains the name of the build that servers open at startup. */
export const CURRENT_FILE = "current";

/** File in every build that a server locks while it serves the build, so that no cleanup deletes it. */
export const IN_USE_FILE = "in_use.lock";

/** A build that stays on disk until it is disposed of. */
interface OpenUiFolder extends Disposable {
  /** Path of the folder. It contains no page if none has been built. */
  readonly path: string;
}

/**
 * Opens the current build for a server, which serves it until it stops, because a newer page could need a newer API.
 *
 * @param builds Path of static/dist.
 */
export async function openUiFolder(builds = UI_BUILDS): Promise<OpenUiFolder> {
  for (;;) {
    const path = await findUiFolder(builds);
    const lock = await lockForUse(path);
    // Another process may have built a newer page and deleted this one before this process got the lock.
    if (await isFile(`${path}/index.html`) || await findUiFolder(builds) === path) {
      return { path, [Symbol.dispose]: () => lock?.close() };
    }
    lock?.close();
  }
}

/** Returns the path of the current build, or of static/dist itself if none has been built. */
export async function findUiFolder(builds = UI_BUILDS): Promise<string> {
  try {
    return `${builds}/${await Deno.readTextFile(`${builds}/${CURRENT_FILE}`)}`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return builds;
    throw error;
  }
}

/**
 * Acquires the shared lock of a build. Without a lock, for example on a network drive, a cleanup at this moment could
 * delete the build.
 */
async function lockForUse(path: string): Promise<Deno.FsFile | undefined> {
  // Inside the executable, files can't be locked and nothing is built.
  if (Deno.build.standalone) return undefined;
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(`${path}/${IN_USE_FILE}`);
    await file.lock(false);
    return file;
  } catch {
    file?.close();
    return undefined;
  }
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then(({ isFile }) => isFile, () => false);
}
