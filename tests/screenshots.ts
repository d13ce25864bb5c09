/**
 * Takes a screenshot of every screen into dist/screenshots, at both widths and in both themes, and updates the ones
 * that README.md and docs/screenshots.md show in docs/screenshots.
 *
 * The font is Inter, from Debian's packages: what a system without fonts has isn't what people see. Without apt-get,
 * the system's fonts are used.
 */
const ROOT = new URL("../", import.meta.url);
const TAKEN = new URL("dist/screenshots/", ROOT);
const SHOWN = new URL("docs/screenshots/", ROOT);
const FONTS = new URL("dist/fonts/", ROOT);
/** Inter for Latin, Noto for Japanese. */
const FONT_PACKAGES = ["fonts-inter", "fonts-noto-cjk"];

await Deno.mkdir(TAKEN, { recursive: true });
const fonts = await installFonts().catch((error) => console.warn(`No fonts from Debian: ${error.message}`));
const { success } = await new Deno.Command(Deno.execPath(), {
  args: ["run", "-A", "tests/run.ts", "tests/e2e/browser/walk.test.ts"],
  cwd: ROOT,
  env: { PARLOR_TEST_SCREENSHOTS: TAKEN.pathname, ...fonts === undefined ? {} : { FONTCONFIG_FILE: fonts } },
}).spawn().status;
if (!success) Deno.exit(1);
const pages = ["README.md", "docs/screenshots.md"].map((page) => Deno.readTextFile(new URL(page, ROOT)));
const names = (await Promise.all(pages)).flatMap((text) => [...text.matchAll(/screenshots\/([\w-]+\.png)\)/g)])
  .map(([, name]) => name!);
for (const name of new Set(names)) {
  await Deno.copyFile(new URL(name, TAKEN), new URL(name, SHOWN));
  console.log(`docs/screenshots/${name}`);
}

/**
 * Unpacks the fonts into a folder of their own.
 *
 * @returns A configuration of fontconfig that uses Inter for `system-ui` and `sans-serif`: Chromium asks for the latter
 * in both cases.
 */
async function installFonts(): Promise<string> {
  const config = new URL("fonts.conf", FONTS);
  await Deno.mkdir(FONTS, { recursive: true });
  await runIn(FONTS, "apt-get", ["download", "-qq", ...FONT_PACKAGES]);
  for await (const { name } of Deno.readDir(FONTS)) {
    if (name.endsWith(".deb")) await runIn(FONTS, "dpkg-deb", ["-x", name, "."]);
  }
  await Deno.writeTextFile(
    config,
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${FONTS.pathname}usr/share/fonts</dir>
  <cachedir>${FONTS.pathname}cache</cachedir>
  <match target="pattern">
    <test name="family"><string>sans-serif</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit>
  </match>
</fontconfig>
`,
  );
  return config.pathname;
}

async function runIn(cwd: URL, program: string, args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args, cwd, stderr: "piped" }).output();
  if (!success) throw new Error(`${program}: ${new TextDecoder().decode(stderr).trim()}`);
}
