import { expect, test } from "vitest";
import { buildUi } from "../../build.ts";

test("the first load is at most 100 kB of compressed script and style, and names nothing outside", async () => {
  const root = new URL("../../", import.meta.url);
  const files = await buildUi({ root, isDev: false });
  const loaded = files.filter(({ path }) => /^assets\/app-.*\.(?:js|css)$/.test(path));
  expect(loaded).toHaveLength(2);
  expect(loaded.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)).toBeLessThan(100_000);
  const page = await Deno.readTextFile(new URL("static/dist/index.html", root));
  for (const { path } of loaded) expect(page).toContain(`"/${path}"`);
  expect(page).not.toMatch(/https?:|style=|<style|<script(?![^>]* src=)|\son\w+=/);
});
