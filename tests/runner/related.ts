/**
 * Finds the tests of a file: those that load it, directly or not.
 *
 * A file depends on every file that it names in quotes, except in `import type`: imports, Workers, child programs, fixtures.
 * Nearly every test of a route or a view starts the whole server or loads the whole page, which name every file. So what puts
 * these together isn't followed. Instead, such a test depends on the files that its own path mirrors, and on what these load.
 */
import { basename, dirname, join, relative, resolve } from "node:path";

/** What puts the server, the page and the commands together. */
const WHOLE =
  /^(main|build|build\/\w+|routes\/(api|app|ui)|services\/services|services\/core\/\w+|services\/(\w+)\/open_\5|services\/cli\/commands|static\/src\/(main|service_worker|dev\/\w+|texts\/(\w\w)\/\6)|static\/src\/views\/shell\/(App|routes|views|screens))\.tsx?$/;

/** Folders whose files can be named by a test. */
const FOLDERS = ["build", "docs", "middleware", "packaging", "routes", "services", "static/src", "tests", ".ci"];
const SOURCE = /\.tsx?$/;
const TEST = /\.test\.ts$/;
/** Strings in quotes that look like the path of a file. */
const NAMED_FILE = /(["'`])(?:\$\{\w+\})?([\w@./-]*\.[a-z]{1,5})\1/g;
const TYPE_IMPORT = /^\s*(?:import|export) type\b[^;]*?from\s+"[^"]+";?/gm;

/** All files of a tree by path, with the text of those that are source code. */
export type Tree = ReadonlyMap<string, string>;

/** Reads the files of a repository. @param root Absolute path. */
export async function readTree(root: string): Promise<Tree> {
  const tree = new Map<string, string>();
  const read = async (folder: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(join(root, folder))) {
      const path = join(folder, name);
      if (isDirectory) await read(path);
      else tree.set(path, SOURCE.test(name) ? await Deno.readTextFile(join(root, path)) : "");
    }
  };
  for await (const { name, isFile } of Deno.readDir(root)) {
    if (isFile) tree.set(name, SOURCE.test(name) ? await Deno.readTextFile(join(root, name)) : "");
  }
  for (const folder of FOLDERS) {
    await read(folder).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    });
  }
  return tree;
}

/** The tests of changed files. */
export interface RelatedTests {
  /** Paths of the tests, sorted. */
  tests: string[];
  /** Changed files that only the whole suite tests. */
  untested: string[];
}

/**
 * Finds the tests of files. If none depends on a file, it finds those of the files that name it.
 *
 * @param changed Paths from the root, also of files that were deleted.
 */
export function findRelatedTests(tree: Tree, changed: readonly string[]): RelatedTests {
  const reached = findReached(tree);
  const findNames = openNames(tree);
  const testsOf = (files: readonly string[]) =>
    [...reached].filter(([, own]) => files.some((path) => own.has(path))).map(([test]) => test);
  const found = changed.map((path) => {
    const climbed = new Set([path]);
    for (let level = [path]; level.length > 0;) {
      const tests = testsOf(level);
      if (tests.length > 0) return tests;
      level = [...tree.keys()].filter((user) => {
        if (climbed.has(user) || WHOLE.test(user) || !SOURCE.test(user)) return false;
        const { loaded, types } = findNames(user);
        return level.some((path) => loaded.includes(path) || types.includes(path));
      });
      for (const user of level) climbed.add(user);
    }
    return [];
  });
  return { tests: [...new Set(found.flat())].sort(), untested: changed.filter((_, i) => found[i]!.length === 0) };
}

/** Returns the files that each test depends on, itself among them. */
export function findReached(tree: Tree): Map<string, Set<string>> {
  const findNames = openNames(tree);
  const sources = [...tree.keys()].filter((path) => SOURCE.test(path) && !path.startsWith("tests/"));
  const tests = [...tree.keys()].filter((path) => TEST.test(path) && !path.startsWith("tests/real/"));
  return new Map(tests.map((test) => {
    const reached = new Set([test]);
    let isWhole = false;
    for (const path of reached) {
      if (WHOLE.test(path)) isWhole = true;
      else for (const name of findNames(path).loaded) reached.add(name);
    }
    const subjects = new Set(isWhole ? findSubjects(sources, test) : []);
    for (const path of subjects) {
      reached.add(path);
      if (WHOLE.test(path)) continue;
      const { loaded, types } = findNames(path);
      // A view or a route is tested with what it names itself, but not with what that rests on in turn.
      for (const name of [...loaded, ...types]) {
        if (isSameScreen(path, name)) subjects.add(name);
        else reached.add(name);
      }
    }
    return [test, reached];
  }));
}

/** Whether both files are in one folder of services/ or of the page's views. */
function isSameScreen(path: string, other: string): boolean {
  const folder = (path: string) => /^(services|static\/src\/views)\/\w+\//.exec(path)?.[0];
  return folder(path) !== undefined && folder(path) === folder(other);
}

/** Returns a function that lists the files that a file names: what it loads, and what only its types come from. */
function openNames(tree: Tree): (path: string) => { loaded: string[]; types: string[] } {
  const byName = Map.groupBy(tree.keys(), (path) => basename(path));
  const find = (path: string, text: string) =>
    [...text.matchAll(NAMED_FILE)].flatMap(([, , name = ""]) => {
      const local = relative(".", resolve(dirname(path), name));
      if (tree.has(local)) return [local];
      // A path from the root or from another folder, such as that of the child programs.
      const end = name.replace(/^(\.{1,2}\/)+/, "");
      const ending = (byName.get(basename(name)) ?? []).filter((each) => `/${each}`.endsWith(`/${end}`));
      return ending.length === 1 ? ending : [];
    });
  const known = new Map<string, { loaded: string[]; types: string[] }>();
  return (path) => {
    const text = tree.get(path) ?? "";
    const types = text.match(TYPE_IMPORT)?.join("\n") ?? "";
    const names = known.get(path) ?? { loaded: find(path, text.replace(TYPE_IMPORT, "")), types: find(path, types) };
    known.set(path, names);
    return names;
  };
}

/**
 * Returns the files that the path of a test mirrors. `tests/services/auth/hosts_tls.test.ts` mirrors `services/auth/hosts.ts`,
 * or all of `services/auth` if no file's name starts its own; `tests/routes/chat/send.test.ts` and
 * `tests/scenarios/chat/titles.test.ts` mirror `routes/chat.ts` and `services/chat`.
 */
export function findSubjects(sources: readonly string[], test: string): string[] {
  const [kind = "", ...rest] = test.replace(/^tests\//, "").replace(TEST, "").split("/");
  const file = [kind === "static" ? "static/src" : kind, ...rest].join("/");
  const stem = (path: string) => path.replace(SOURCE, "");
  const inFolder = (folder: string) => sources.filter((path) => path.startsWith(`${folder}/`));
  const inOwnFolder = sources.filter((path) => path.startsWith(`${dirname(file)}/`));
  const named = inOwnFolder.filter((path) => dirname(path) === dirname(file) && isStart(stem(path), file));
  const subjects = named.length > 0 ? named : inOwnFolder;
  // Routes and scenarios test the service of the same name.
  if (["routes", "scenarios"].includes(kind) && rest.length > 0) {
    const subject = rest.length > 1
      ? rest[0]!
      : sources.map(stem).find((path) => dirname(path) === "routes" && isStart(path, file))?.slice("routes/".length) ??
        rest[0]!;
    subjects.push(...sources.filter((path) => stem(path) === `routes/${subject}`), ...inFolder(`services/${subject}`));
  }
  if (kind === "e2e") {
    subjects.push(...sources.filter((path) => /^(services|build)\//.test(path) && isStart(stem(path), file)));
  }
  // The texts of a screen have its name, or that of a part of it.
  if (kind === "static" && rest[0] === "views") {
    subjects.push(
      ...sources.filter((path) => /^static\/src\/texts\/\w\w\//.test(path) && isStart(stem(path), rest[1]!)),
    );
  }
  return subjects;
}

/** Whether a path is that of a file whose further tests are named after it: `hosts` and `hosts_tls`, `PartList` and `part_list`. */
function isStart(path: string, test: string): boolean {
  const snake = (name: string) => name.replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  const [own, other] = [snake(basename(path)), basename(test)];
  return other === own || other.startsWith(`${own}_`);
}
