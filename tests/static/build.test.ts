import { expect, test } from "vitest";
import { buildUi, firstLoadOf } from "../../build.ts";

const ROOT = new URL("../../", import.meta.url);
const assetOf = (path: string) => Deno.readTextFile(new URL(`static/dist/${path}`, ROOT));

/** On a machine that is busy with other work. */
const TWO_BUILDS_MS = 180_000;

test("the first load is at most 100 kB of compressed script and style, and names nothing outside", async () => {
  const files = await buildUi({ root: ROOT, isDev: false });
  const loaded = await firstLoadOf(files, ROOT);
  expect(loaded.filter(({ path }) => path.endsWith(".css"))).toHaveLength(1);
  expect(loaded.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)).toBeLessThan(100_000);
  const page = await assetOf("index.html");
  for (const { path } of loaded) expect(page).toContain(`"/${path}"`);
  expect(page).not.toMatch(/https?:|style=|<style|<script(?![^>]* src=)|\son\w+=/);
});

test("what the first script needs is loaded beside it, not after it", async () => {
  const files = await buildUi({ root: ROOT, isDev: false });
  const page = await assetOf("index.html");
  const scripts = (await firstLoadOf(files, ROOT)).filter(({ path }) => path.endsWith(".js"));
  const preloaded = [...page.matchAll(/<link rel="modulepreload" href="\/([^"]+)">/g)].map(([, path]) => path);
  const entry = /<script type="module" src="\/([^"]+)">/.exec(page)![1]!;
  expect([entry, ...preloaded].sort()).toEqual(scripts.map(({ path }) => path).sort());
});

test("what makes text of replies readable is loaded when there is one, and kept for when there is no network", async () => {
  const files = await buildUi({ root: ROOT, isDev: false });
  const textOf = async (part: typeof files) => (await Promise.all(part.map(({ path }) => assetOf(path)))).join("\n");
  const scripts = files.filter(({ path }) => path.startsWith("assets/") && path.endsWith(".js"));
  const first = new Set((await firstLoadOf(files, ROOT)).map(({ path }) => path));
  // The cleaner of HTML, by a word of its own interface.
  const withCleaner = async (part: typeof files) => (await textOf(part)).includes("ALLOWED_URI_REGEXP");
  expect(await withCleaner(scripts.filter(({ path }) => first.has(path)))).toBe(false);
  const later = scripts.filter(({ path }) => !first.has(path));
  expect(await withCleaner(later)).toBe(true);
  const kept = await assetOf("service_worker.js");
  for (const { path } of later) expect(kept).toContain(`"/${path}"`);
});

test("the page of components is part of a developer's build only", async () => {
  const has = async (isDev: boolean) => {
    const files = await buildUi({ root: ROOT, isDev });
    const scripts = files.filter(({ path }) => path.endsWith(".js"));
    const texts = await Promise.all(scripts.map(({ path }) => assetOf(path)));
    return texts.some((text) => text.includes("Every component in every state"));
  };
  expect(await has(true)).toBe(true);
  expect(await has(false)).toBe(false);
}, TWO_BUILDS_MS);

test("a page that has become small is not shadowed by compressed copies of the larger one before it", async () => {
  const dist = new URL("static/dist/", ROOT);
  await buildUi({ root: ROOT, isDev: false });
  await Deno.writeTextFile(new URL("assets/../index.html.br", dist), "an older page");
  await buildUi({ root: ROOT, isDev: true });
  const page = await Deno.readTextFile(new URL("index.html", dist));
  const copies = await Array.fromAsync(Deno.readDir(dist), ({ name }) => name);
  if (page.length < 1024) expect(copies).not.toContain("index.html.br");
  else expect((await Deno.readFile(new URL("index.html.br", dist))).length).not.toBe("an older page".length);
  await buildUi({ root: ROOT, isDev: false });
}, TWO_BUILDS_MS);
