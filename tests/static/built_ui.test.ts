import { afterEach, beforeEach, expect, test } from "vitest";
import { fileURLToPath } from "node:url";
import { buildIfChanged, builtUi, type UiFolders } from "../helpers/built_ui.ts";

const ROOT = new URL("../../", import.meta.url);
const SEVERAL_BUILDS_MS = 180_000;

let folders: UiFolders;

/** A page of one line, beside everything else that a build takes. */
beforeEach(async () => {
  const root = new URL(`file://${await Deno.makeTempDir({ prefix: "parlor-ui-" })}/`);
  const write = async (path: string, text: string) => {
    await Deno.mkdir(new URL("./", new URL(path, root)), { recursive: true });
    await Deno.writeTextFile(new URL(path, root), text);
  };
  for (const path of ["build.ts", "build/shell.ts", "deno.lock", "static/src/index.html", "static/src/icon.svg"]) {
    await write(path, await Deno.readTextFile(new URL(path, ROOT)));
  }
  // Else the bundler would bring the lock, which is one of the sources, in line with what is in use here.
  await write("deno.json", '{ "lock": false }');
  await write("static/src/main.tsx", 'document.title = "one";');
  await write("static/src/service_worker.ts", "addEventListener('fetch', () => [SHELL_FILES, SHELL_VERSION]);");
  for (const name of ["main", "later"]) await write(`static/src/styles/${name}.css`, '@import "base.css";');
  await write("static/src/styles/base.css", "body { margin: 0 }");
  const icons = "static/src/icons/";
  await Deno.mkdir(new URL(icons, root));
  for await (const { name } of Deno.readDir(new URL(icons, ROOT))) {
    await Deno.copyFile(new URL(icons + name, ROOT), new URL(icons + name, root));
  }
  folders = { root, dist: new URL("static/dist/", root), stamp: new URL("page.stamp", root) };
});

afterEach(() => Deno.remove(folders.root, { recursive: true }));

test(
  "a page is built once, and anew when a source is changed, added or gone, or its folder is no longer as it was",
  async () => {
    const { root, dist } = folders;
    const build = () => buildIfChanged(folders, false);
    const source = (path: string) => new URL(`static/src/${path}`, root);
    const script = async () => {
      const page = await Deno.readTextFile(new URL("index.html", dist));
      return await Deno.readTextFile(new URL(/<script type="module" src="\/([^"]+)">/.exec(page)![1]!, dist));
    };
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("one");

    await Deno.writeTextFile(source("main.tsx"), 'document.title = "two";');
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("two");

    await Deno.writeTextFile(source("more.ts"), "");
    expect([await build(), await build()]).toEqual([true, false]);
    await Deno.remove(source("more.ts"));
    expect([await build(), await build()]).toEqual([true, false]);

    await Deno.remove(new URL("index.html", dist));
    expect([await build(), await build()]).toEqual([true, false]);
    await Deno.writeTextFile(new URL("index.html", dist), "another build");
    expect([await build(), await build()]).toEqual([true, false]);
    expect(await script()).toContain("two");
  },
  SEVERAL_BUILDS_MS,
);

test("processes that ask at the same time get one whole page", async () => {
  const ask = async () => {
    const helper = new URL("../helpers/built_ui.ts", import.meta.url).href;
    const code = `const { builtUi } = await import("${helper}"); console.log(await builtUi());`;
    const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", code],
      cwd: fileURLToPath(ROOT),
    }).output();
    expect(success, new TextDecoder().decode(stderr)).toBe(true);
    return new TextDecoder().decode(stdout).trim();
  };
  const path = fileURLToPath(new URL("static/dist/", ROOT));
  expect(await Promise.all([ask(), ask(), builtUi()])).toEqual([path, path, path]);
  const page = await Deno.readTextFile(`${path}index.html`);
  for (const [, asset] of page.matchAll(/"\/(assets\/[^"]+)"/g)) await Deno.stat(path + asset);
}, SEVERAL_BUILDS_MS);
