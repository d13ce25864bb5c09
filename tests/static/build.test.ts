import { afterAll, beforeAll, expect, test } from "vitest";
import { buildUi, type BuiltFile, findFirstLoad } from "../../build/ui.ts";

const ROOT = new URL("../../", import.meta.url);
/** Time for two bundles on a busy machine. */
const TWO_BUILDS_MS = 180_000;

/** Separate folders: servers of concurrent tests use static/dist. */
let released: URL;
let developers: URL;
let files: BuiltFile[];
let developersFiles: BuiltFile[];

beforeAll(async () => {
  released = await temporaryFolder();
  developers = await temporaryFolder();
  files = await buildUi({ root: ROOT, dist: released, isDev: false });
  developersFiles = await buildUi({ root: ROOT, dist: developers, isDev: true, isPlain: true });
}, TWO_BUILDS_MS);

afterAll(async () => {
  for (const folder of [released, developers]) await Deno.remove(folder, { recursive: true });
});

async function temporaryFolder(): Promise<URL> {
  return new URL(`file://${await Deno.makeTempDir({ prefix: "parlor-ui-" })}/`);
}

const assetOf = (path: string, folder = released) => Deno.readTextFile(new URL(path, folder));

test("the first load has at most 100 kB of compressed script and style, and references nothing outside", async () => {
  const loaded = await findFirstLoad(files, released);
  expect(loaded.filter(({ path }) => path.endsWith(".css"))).toHaveLength(1);
  expect(loaded.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)).toBeLessThan(100_000);
  const page = await assetOf("index.html");
  for (const { path } of loaded) expect(page).toContain(`"/${path}"`);
  expect(page).not.toMatch(/https?:|style=|<style|<script(?![^>]* src=)|\son\w+=/);
});

test("preloads everything that the first script imports", async () => {
  const page = await assetOf("index.html");
  const scripts = (await findFirstLoad(files, released)).filter(({ path }) => path.endsWith(".js"));
  const preloaded = [...page.matchAll(/<link rel="modulepreload" href="\/([^"]+)">/g)].map(([, path]) => path);
  const entry = /<script type="module" src="\/([^"]+)">/.exec(page)![1]!;
  const theme = /<script src="\/([^"]+)">/.exec(page)![1]!;
  expect([entry, theme, ...preloaded].sort()).toEqual(scripts.map(({ path }) => path).sort());
});

test("loads message rendering on demand, and caches it for offline use", async () => {
  const textOf = async (part: typeof files) => (await Promise.all(part.map(({ path }) => assetOf(path)))).join("\n");
  const scripts = files.filter(({ path }) => path.startsWith("assets/") && path.endsWith(".js"));
  const first = new Set((await findFirstLoad(files, released)).map(({ path }) => path));
  // DOMPurify, recognized by an option's name.
  const withCleaner = async (part: typeof files) => (await textOf(part)).includes("ALLOWED_URI_REGEXP");
  expect(await withCleaner(scripts.filter(({ path }) => first.has(path)))).toBe(false);
  const later = scripts.filter(({ path }) => !first.has(path));
  expect(await withCleaner(later)).toBe(true);
  const kept = await assetOf("service_worker.js");
  for (const { path } of later) expect(kept).toContain(`"/${path}"`);
});

test("bundles neither the server's schemas nor the library that checks them", async () => {
  for (const { path } of files.filter((file) => file.path.endsWith(".js"))) {
    expect(await assetOf(path), path).not.toMatch(/ZodError|safeParse|registerPath/);
  }
});

test("includes the page of components only in developer builds", async () => {
  const has = async (folder: URL, built: BuiltFile[]) => {
    const scripts = built.filter(({ path }) => path.endsWith(".js"));
    const texts = await Promise.all(scripts.map(({ path }) => assetOf(path, folder)));
    return texts.some((text) => text.includes("Every component in every state"));
  };
  expect(await has(developers, developersFiles)).toBe(true);
  expect(await has(released, files)).toBe(false);
});

test("the start of the installed app has the color of the icon, because it knows no theme", async () => {
  const manifest = JSON.parse(await assetOf("manifest.webmanifest"));
  expect(manifest.background_color).toBe(manifest.theme_color);
});
