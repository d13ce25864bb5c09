import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { CONFIG_KEYS } from "../services/config/config_keys.ts";
import { runParlor } from "./helpers/processes/parlor_command.ts";
import { en, loadLater } from "../static/src/texts/en/en.ts";

const ROOT = resolve(import.meta.dirname!, "..");
/** Other programs: lines with their commands aren't checked. */
const FOREIGN_COMMAND =
  /\b(docker|docker compose|systemd-run|systemctl|ollama|llama-server|koboldcpp|vllm|litestream|oauth2-proxy|rsync|sha256sum|npm|git|webui\.sh) /;
/** Flags of `parlor` and its commands that aren't configuration keys. */
const COMMAND_FLAGS = [
  "help",
  "version",
  "print-config",
  "base-url",
  "url",
  "dry-run",
  "replace",
  "plain",
  "deep",
  "check",
  "item",
];
const OTHER_VARIABLES = [
  "PARLOR_BACKUP_FILE",
  "PARLOR_BACKUP_PASSPHRASE",
];

/** Returns the files below a folder whose names match, as paths from the root. */
async function findFiles(folder: string, pattern: RegExp): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    if (isDirectory) found.push(...await findFiles(`${folder}/${name}`, pattern));
    else if (pattern.test(name)) found.push(`${folder}/${name}`);
  }
  return found.sort();
}

/** A document that isn't in the repository, or a page of docs/ without its path. */
const OTHER_DOCUMENT =
  /\b(?:DESIGN|BENCH|SPEC|ENVIRONMENT|SECURITY-CASES)\.md\b|(?<![\w/-])(?:auth|cards|hub|images|llm|models|tailnet|tailscale|tts)\.md\b/g;
const SOURCE_FOLDERS = ["build", "middleware", "routes", "services", "static/src", "tests"];
const pages = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", ...await findFiles("docs", /\.md$/)];
const texts = new Map(
  await Promise.all(
    pages.map(async (path) => [path, await Deno.readTextFile(join(ROOT, path))] as const),
  ),
);
/** Pages of the guide and the like: neither generated nor lists of figures. */
const isWritten = (path: string) => !/benchmarks|security-cases|configuration|decisions|CHANGELOG/.test(path);

/** Removes code blocks. */
const prose = (text: string) => text.replace(/^```.*?^```$/gms, "");
/** Returns the anchor that GitHub gives a heading. */
const toAnchor = (heading: string) =>
  heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-");
const findAnchors = (text: string) => [...prose(text).matchAll(/^#+ +(.+)$/gm)].map((match) => toAnchor(match[1]!));

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

test("links between pages lead to files and headings", async () => {
  const broken: string[] = [];
  let count = 0;
  for (const [path, text] of texts) {
    for (const [, target = ""] of prose(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      count++;
      const [file = "", anchor] = target.split("#", 2);
      const to = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file));
      const there = await Deno.stat(join(ROOT, to)).catch(() => undefined);
      const isHeading = anchor === undefined || findAnchors(texts.get(to) ?? "").includes(anchor);
      if (there === undefined || !isHeading) broken.push(`${path}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(20);
});

test("shows every screenshot in docs/screenshots on a page", async () => {
  const links = new Set(
    [...texts.values()].flatMap((text) => [...text.matchAll(/screenshots\/([\w-]+\.png)/g)].map(([, name]) => name)),
  );
  for await (const { name } of Deno.readDir(join(ROOT, "docs/screenshots"))) expect(links, name).toContain(name);
});

test("pages and headings cited in source comments exist", async () => {
  const sources = (await Promise.all(SOURCE_FOLDERS.map((folder) => findFiles(folder, /\.tsx?$/)))).flat();
  const broken: string[] = [];
  let count = 0;
  for (const path of ["main.ts", "build.ts", ...sources]) {
    const source = await Deno.readTextFile(join(ROOT, path));
    for (const [cited] of source.matchAll(OTHER_DOCUMENT)) broken.push(`${path}: ${cited}`);
    for (
      const [cited, page, anchorText, heading] of source.matchAll(
        /(?<![\w/])(docs\/[\w/-]+\.md)(?:#([\w-]+)|, "([^"\n]+)")?/g,
      )
    ) {
      count++;
      const anchor = heading === undefined ? anchorText : toAnchor(heading);
      const text = texts.get(page!);
      if (text === undefined || anchor !== undefined && !findAnchors(text).includes(anchor)) {
        broken.push(`${path}: ${cited}`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(5);
});

test("source files named on a page exist", async () => {
  const missing: string[] = [];
  let count = 0;
  for (const [path, text] of texts) {
    for (const [, file = ""] of text.matchAll(/`((?:docs|routes|services|middleware|static|tests)\/[\w./-]+\.\w+)`/g)) {
      count++;
      if (await Deno.stat(join(ROOT, file)).catch(() => undefined) === undefined) missing.push(`${path}: ${file}`);
    }
  }
  expect(missing).toEqual([]);
  expect(count).toBeGreaterThan(5);
});

test("flags, variables and configuration keys named on a page exist", () => {
  const keys = Object.keys(CONFIG_KEYS);
  const flags = new Set([...keys.map((key) => key.replaceAll("_", "-")), ...COMMAND_FLAGS, "passphrase-file"]);
  const variables = new Set([...keys.map((key) => `PARLOR_${key.toUpperCase()}`), ...OTHER_VARIABLES]);
  const wrong: string[] = [];
  for (const [path, text] of texts) {
    if (!isWritten(path)) continue;
    for (const [variable] of text.matchAll(/\bPARLOR_[A-Z_]+/g)) if (!variables.has(variable)) wrong.push(variable);
    for (const line of text.split("\n")) {
      // /var/lib/parlor is a folder.
      const command = /(?<!lib\/)\bparlor(?:-linux-x64)? (?!_)(.*)|task start (.*)/.exec(line)?.[0];
      if (command === undefined || FOREIGN_COMMAND.test(line)) continue;
      for (const [, flag = ""] of command.matchAll(/(?<![\w-])--([a-z][a-z-]*)/g)) {
        if (!flags.has(flag)) wrong.push(`${path}: --${flag}`);
      }
    }
    for (const block of [...text.matchAll(/^```toml\n(.*?)^```$/gms)].map((match) => match[1]!)) {
      for (const [, key = ""] of block.matchAll(/^(\w+) = /gm)) if (!keys.includes(key)) wrong.push(`${path}: ${key}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("commands of parlor named on a page exist", async () => {
  const named = new Map<string, Set<string>>();
  for (const [path, text] of texts) {
    if (!isWritten(path)) continue;
    for (const [, command = "", word] of text.matchAll(/`parlor ([a-z]+)(?: ([a-z]+))?(?= [A-Z]|[ `.])/g)) {
      const words = named.get(command) ?? named.set(command, new Set()).get(command)!;
      if (word !== undefined && /^(auth|import|key)$/.test(command)) words.add(word);
    }
  }
  for (const [command, words] of named) {
    const { code, stdout } = await runParlor(["help", command]);
    expect([command, code]).toEqual([command, 0]);
    for (const word of words) expect(stdout).toMatch(new RegExp(`(^Usage: parlor ${command}|^) +${word}\\b`, "m"));
  }
  expect([...named.keys()].sort()).toEqual(expect.arrayContaining(["auth", "backup", "doctor", "import", "restore"]));
});

test("settings screens named on a page exist", async () => {
  await loadLater();
  const words = new Set(stringsIn(en));
  const wrong: string[] = [];
  const named = new Set<string>();
  for (const [path, text] of texts) {
    if (!isWritten(path)) continue;
    // "Server Settings" and "… there" are menus of other programs.
    const screens = /\b(?<!Server )Settings(?:,| >)\s+([A-Z]\w+)\b(?:(?:,| >)\s+([A-Z]\w+)\b)?(?! there)/g;
    for (const [whole, first, second] of prose(text).matchAll(screens)) {
      named.add(first!);
      for (const name of [first, second]) {
        if (name !== undefined && !words.has(name)) wrong.push(`${path}: ${whole.replace(/\s+/g, " ")}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect([...named].sort()).toEqual(expect.arrayContaining(["Access", "Connections", "Data", "Voice"]));
});

test("labels in bold in the guide are labels of the page", async () => {
  await loadLater();
  const straighten = (label: string) => label.replace(/\s+/g, " ").replaceAll("’", "'");
  const labels = new Set([...stringsIn(en)].map(straighten));
  const wrong: string[] = [];
  let count = 0;
  for (const [path, text] of texts) {
    if (!path.startsWith("docs/guide/")) continue;
    for (const [, label = ""] of prose(text).matchAll(/\*\*([^*]+?)\.?\*\*/g)) {
      count++;
      if (!labels.has(straighten(label))) wrong.push(`${path}: ${label}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(20);
});

test("`deno task` commands on a page exist", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const wrong: string[] = [];
  for (const [path, text] of texts) {
    for (const [, task = ""] of text.matchAll(/\b(?:deno|deno@[\d.]+) task (?:--quiet )?([\w-]+)/g)) {
      if (!Object.hasOwn(tasks, task)) wrong.push(`${path}: ${task}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("decisions have unique numbers, which are in their titles", () => {
  const numbers = [...texts.keys()].filter((path) => path.startsWith("docs/decisions/")).map((path) => {
    const number = /^docs\/decisions\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1];
    expect(texts.get(path)!.startsWith(`# ${number}: `), path).toBe(true);
    return number;
  });
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.length).toBeGreaterThan(0);
});
