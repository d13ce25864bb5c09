/**
 * Keeps the page itself on the device, so that it opens without the network and an open one never misses its files.
 *
 * It holds the files of one build, all of them or none, and nothing of the API ever: what a person wrote or reads is
 * neither stored nor sent later from here. A new build waits until no page of the old one is open.
 */

/** Set by the build: the list of files, and a name that changes with any of them. */
declare const SHELL_FILES: readonly string[];
declare const SHELL_VERSION: string;

const PREFIX = "parlor-shell-";
const CACHE = PREFIX + SHELL_VERSION;
/** Where what was shared waits for the page that it opens; state/shared_content.ts takes it out. */
const SHARED = "parlor-shared";
/** A page that takes longer comes from the device. */
const PAGE_PATIENCE_MS = 4000;
/** What a proxy says when the server behind it is away. */
const AWAY = [502, 503, 504];

/** The part of the worker's surroundings that is used; the compiler knows those of a page. */
interface WorkerScope {
  readonly location: Location;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install", listener: (event: InstallEvent) => void): void;
  addEventListener(type: "activate", listener: (event: LifeEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: RequestEvent) => void): void;
}

interface LifeEvent {
  waitUntil(work: Promise<unknown>): void;
}

interface InstallEvent extends LifeEvent {
  /** Lets the browser answer some requests without asking the worker; Chromium has it. */
  addRoutes?(rules: { condition: { urlPattern: string }; source: "network" }[]): Promise<void>;
}

interface RequestEvent extends LifeEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

const worker = self as unknown as WorkerScope;

worker.addEventListener("install", (event) => event.waitUntil(Promise.all([keepShell(), passApi(event)])));
worker.addEventListener("activate", (event) => event.waitUntil(dropOlder().then(() => worker.clients.claim())));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== worker.location.origin || url.pathname.startsWith("/api/")) return;
  if (request.method === "POST" && url.pathname === "/share") return event.respondWith(takeShared(request));
  if (request.method !== "GET") return;
  if (url.pathname.startsWith("/assets/")) event.respondWith(asset(request));
  else if (request.mode === "navigate") event.respondWith(page(request));
});

/** One file after another: the page is in use meanwhile, and what it asks for goes first. */
async function keepShell(): Promise<void> {
  const cache = await caches.open(CACHE);
  try {
    for (const path of SHELL_FILES) {
      // The page has one address for every build, so the browser's own copy may be an older one.
      const isPage = path === "/";
      const kept = isPage ? undefined : await caches.match(path);
      if (kept) await cache.put(path, kept);
      else await cache.add(new Request(path, { priority: "low", ...isPage ? { cache: "reload" } : {} }));
    }
  } catch (error) {
    await caches.delete(CACHE);
    throw error;
  }
}

/** What the worker would only pass on costs every request of the API a message to it and back. */
async function passApi(event: InstallEvent): Promise<void> {
  await event.addRoutes?.([{ condition: { urlPattern: "/api/*" }, source: "network" }]);
}

async function dropOlder(): Promise<void> {
  const older = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(older.map((name) => caches.delete(name)));
}

/** Under a hashed name there is only ever one content, so any build's copy is the right one. */
async function asset(request: Request): Promise<Response> {
  return await caches.match(request.url) ?? await fetch(request);
}

/** The newest page where the server answers in time, else the kept one. */
async function page(request: Request): Promise<Response> {
  const kept = async () => await (await caches.open(CACHE)).match("/");
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, PAGE_PATIENCE_MS));
  const asked = fetch(request);
  const answer = await Promise.race([asked, late]).catch(() => undefined);
  if (answer !== undefined && !AWAY.includes(answer.status)) return answer;
  return await kept() ?? answer ?? await asked;
}

/** Keeps what another program shared until the page has it, and opens the page. It is shown there, never sent. */
async function takeShared(request: Request): Promise<Response> {
  const form = await request.formData();
  await caches.delete(SHARED);
  const cache = await caches.open(SHARED);
  const words = ["title", "text", "url"].map((name) => form.get(name)).filter((part) =>
    typeof part === "string" && part.trim() !== ""
  );
  await cache.put("/shared/text", new Response([...new Set(words)].join("\n\n")));
  const files = form.getAll("files").filter((part) => part instanceof File);
  for (const [index, file] of files.entries()) {
    const headers = { "Content-Type": file.type, "X-Name": encodeURIComponent(file.name) };
    await cache.put(`/shared/file-${index}`, new Response(file, { headers }));
  }
  return Response.redirect("/share", 303);
}
