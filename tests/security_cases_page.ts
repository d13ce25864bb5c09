/** docs/security-cases.md: every case with the tests that name it, out of the tests themselves. */
import { NOT_BUILT_YET, SECURITY_CASES } from "./security_cases.ts";

const TESTS = new URL("./", import.meta.url);
/** A title, of a test or of a row of one, that begins with ids. */
const TITLE = /[([,]\s*(["'`])((?:[A-Z]\d\d[ ,]+)+)((?:(?!\1)[^\\\n]|\\.)*)\1/g;

/** A test that names cases. */
export interface NamedTest {
  file: string;
  title: string;
}

/** Gives the tests by the ids that their titles begin with. */
export async function testsByCase(): Promise<Map<string, NamedTest[]>> {
  const found = new Map<string, NamedTest[]>();
  for (const file of (await testFiles("")).sort()) {
    const text = await Deno.readTextFile(new URL(file, TESTS));
    for (const [, , ids, title] of text.matchAll(TITLE)) {
      for (const [id] of ids!.matchAll(/[A-Z]\d\d/g)) {
        found.set(id, [...found.get(id) ?? [], { file: `tests/${file}`, title: title! }]);
      }
    }
  }
  return found;
}

/**
 * Tells what is wrong between cases and tests.
 *
 * @returns A sentence each: a case without a test, one that is built although it is listed as not, an id that is none.
 */
export function problemsOf(tests: ReadonlyMap<string, unknown>, notBuiltYet = NOT_BUILT_YET): string[] {
  const ids = SECURITY_CASES.flatMap(([, cases]) => cases.map(([id]) => id));
  return [
    ...ids.filter((id) => !tests.has(id) && !notBuiltYet.includes(id)).map((id) => `${id} has no test`),
    ...notBuiltYet.filter((id) => tests.has(id)).map((id) => `${id} has a test and is listed as not built yet`),
    ...[...tests.keys(), ...notBuiltYet].filter((id) => !ids.includes(id)).map((id) => `${id} is no case`),
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${id} is there twice`),
  ];
}

/** Gives the page. */
export function securityCasesPage(tests: ReadonlyMap<string, NamedTest[]>): string {
  const lines = [
    "# Security and fault cases",
    "",
    "Made from the tests by `deno task docs`, which fails when a case has no test. `.ci/run` runs all of them, and ends well",
    "only when each one passes; those under `tests/real` need the real parts that it installs.",
  ];
  for (const [heading, cases] of SECURITY_CASES) {
    lines.push("", `## ${heading}`, "", "| case | what has to hold | tests |", "|---|---|---|");
    for (const [id, title] of cases) {
      const named = tests.get(id)?.map(({ file, title: name }) => `${cell(name)} ([${shortName(file)}](../${file}))`);
      lines.push(`| ${id} | ${title} | ${named?.join("<br>") ?? "not built yet"} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}

function cell(text: string): string {
  return text.replaceAll("\\", "").replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

function shortName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1, -".test.ts".length);
}

async function testFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder || ".", TESTS))) {
    if (isDirectory) files.push(...await testFiles(`${folder}${name}/`));
    // The test of this page itself speaks of cases and tests none.
    else if (name.endsWith(".test.ts") && name !== "security_cases.test.ts") files.push(folder + name);
  }
  return files;
}
