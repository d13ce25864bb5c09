import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";
import { CONFIG_KEYS } from "../services/config/config_keys.ts";
import { en, loadLater } from "../static/src/texts/en/en.ts";

const ROOT = resolve(import.meta.dirname!, "..");
/** Programs of others whose options and settings the pages name, too: their lines are not ours to check. */
const FOREIGN_COMMAND =
  /\b(docker|docker compose|systemd-run|systemctl|ollama|llama-server|koboldcpp|vllm|litestream|sha256sum|npm|git|webui\.sh) /;
/** What `parlor` and its commands take beside the flags of the configuration. */
const COMMAND_FLAGS = ["help", "version", "print-config", "base-url", "url", "dry-run", "replace", "plain"];
const OTHER_VARIABLES = ["PARLOR_BACKUP_PASSPHRASE"];

/** Returns the files below a folder whose names match, as paths from the root. */
async function findFiles(folder: string, pattern: RegExp): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    if (isDirectory) found.push(...await findFiles(`${folder}/${name}`, pattern));
    else if (pattern.test(name)) found.push(`${folder}/${name}`);
  }
  return found.sort();
}

const SOURCE_FOLDERS = ["build", "middleware", "routes", "services", "static/src", "tests"];
const pages = ["README.md", "CHANGELOG.md", ...await findFiles("docs", /\.md$/)];
const texts = new Map(
  await Promise.all(
    pages.map(async (path) => [path, await Deno.readTextFile(join(ROOT, path))] as const),
  ),
);
/** A page of the guide or the like: neither a list of figures nor made from code. */
const isWritten = (path: string) => !/benchmarks|security-cases|configuration|decisions|CHANGELOG/.test(path);

/** Gives the text without its blocks of code. */
const prose = (text: string) => text.replace(/^```.*?^```$/gms, "");
/** Gives the anchor of a heading as the usual hosts make it. */
const anchorOf = (heading: string) =>
  heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-");
const anchorsOf = (text: string) => [...prose(text).matchAll(/^#+ +(.+)$/gm)].map((match) => anchorOf(match[1]!));

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

test("every link between pages leads to a file, and every anchor to a heading", async () => {
  const broken: string[] = [];
  let count = 0;
  for (const [path, text] of texts) {
    for (const [, target = ""] of prose(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      count++;
      const [file = "", anchor] = target.split("#", 2);
      const to = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file));
      const there = await Deno.stat(join(ROOT, to)).catch(() => undefined);
      const isHeading = anchor === undefined || anchorsOf(texts.get(to) ?? "").includes(anchor);
      if (there === undefined || !isHeading) broken.push(`${path}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(20);
});

test("every page of docs/ that a source comment cites exists, and so does the heading", async () => {
  const sources = (await Promise.all(SOURCE_FOLDERS.map((folder) => findFiles(folder, /\.tsx?$/)))).flat();
  const broken: string[] = [];
  let count = 0;
  for (const path of ["main.ts", "build.ts", ...sources]) {
    const source = await Deno.readTextFile(join(ROOT, path));
    for (const [cited, page, anchor] of source.matchAll(/(?<![\w/])(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)) {
      count++;
      const text = texts.get(page!);
      if (text === undefined || anchor !== undefined && !anchorsOf(text).includes(anchor)) {
        broken.push(`${path}: ${cited}`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(5);
});

test("every file of ours that a page names is there", async () => {
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

test("every flag, variable and key of the configuration that a page names is one", () => {
  const keys = Object.keys(CONFIG_KEYS);
  const flags = new Set([...keys.map((key) => key.replaceAll("_", "-")), ...COMMAND_FLAGS, "passphrase-file"]);
  const variables = new Set([...keys.map((key) => `PARLOR_${key.toUpperCase()}`), ...OTHER_VARIABLES]);
  const wrong: string[] = [];
  for (const [path, text] of texts) {
    if (!isWritten(path)) continue;
    for (const [variable] of text.matchAll(/\bPARLOR_[A-Z_]+/g)) if (!variables.has(variable)) wrong.push(variable);
    for (const line of text.split("\n")) {
      const command = /\bparlor(?:-linux-x64)? (?!_)(.*)|task start (.*)/.exec(line)?.[0];
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

test("every screen of the settings that a page names is called so in the page of Parlor", async () => {
  await loadLater();
  const words = new Set(stringsIn(en));
  const wrong: string[] = [];
  const named = new Set<string>();
  for (const [path, text] of texts) {
    if (!isWritten(path)) continue;
    // What is "there", or of a server, is the menu of another program.
    const screens = /\b(?<!Server )Settings,\s+([A-Z]\w+)\b(?:,\s+([A-Z]\w+)\b)?(?! there)/g;
    for (const [whole, first, second] of prose(text).matchAll(screens)) {
      named.add(first!);
      for (const name of [first, second]) {
        if (name !== undefined && !words.has(name)) wrong.push(`${path}: ${whole.replace(/\s+/g, " ")}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect([...named].sort()).toEqual(expect.arrayContaining(["Connections", "Data", "Privacy", "Voice"]));
});

test("every command `deno task` on a page is a task", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const wrong: string[] = [];
  for (const [path, text] of texts) {
    for (const [, task = ""] of text.matchAll(/\b(?:deno|deno@[\d.]+) task (?:--quiet )?([\w-]+)/g)) {
      if (!Object.hasOwn(tasks, task)) wrong.push(`${path}: ${task}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("each decision has a number of its own, and says it in its title", () => {
  const numbers = [...texts.keys()].filter((path) => path.startsWith("docs/decisions/")).map((path) => {
    const number = /^docs\/decisions\/(\d{4})-[a-z0-9-]+\.md$/.exec(path)?.[1];
    expect(texts.get(path)!.startsWith(`# ${number}: `), path).toBe(true);
    return number;
  });
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.length).toBeGreaterThan(0);
});
