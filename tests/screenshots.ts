/**
 * Takes a screenshot of every screen into dist/screenshots, at both widths and in both themes, and updates the ones that
 * README.md shows in docs/screenshots.
 */
const ROOT = new URL("../", import.meta.url);
const TAKEN = new URL("dist/screenshots/", ROOT);
const SHOWN = new URL("docs/screenshots/", ROOT);

await Deno.mkdir(TAKEN, { recursive: true });
const { success } = await new Deno.Command(Deno.execPath(), {
  args: ["run", "-A", "tests/run.ts", "tests/e2e/browser/walk.test.ts"],
  cwd: ROOT,
  env: { PARLOR_TEST_SCREENSHOTS: TAKEN.pathname },
}).spawn().status;
if (!success) Deno.exit(1);
const readme = await Deno.readTextFile(new URL("README.md", ROOT));
for (const [, name] of readme.matchAll(/\(docs\/screenshots\/([\w-]+\.png)\)/g)) {
  await Deno.copyFile(new URL(name!, TAKEN), new URL(name!, SHOWN));
  console.log(`docs/screenshots/${name}`);
}
