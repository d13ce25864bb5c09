/** The code blocks of the pages in the order of the guide, and the commands in them as a shell reads them. */
import { findOnPath } from "../../../services/process/supervised_process.ts";
import { tempFolder } from "./storage_folder.ts";

const ROOT = new URL("../../../", import.meta.url);

/** A fenced block. */
export interface DocBlock {
  /** `"docs/guide/install.md"` */
  page: string;
  /** Line of the opening fence. */
  line: number;
  /** The word after the opening fence; empty without one. */
  language: string;
  /** Without the indentation of the fence. */
  text: string;
}

/** A command of a block: the program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Reads the blocks of the README, CONTRIBUTING.md, docs/ and the guide. */
export async function readDocBlocks(): Promise<DocBlock[]> {
  const pages = ["README.md", "CONTRIBUTING.md"];
  for (const folder of ["docs/", "docs/guide/"]) {
    const names = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)), ({ name }) => name);
    pages.push(...names.filter((name) => name.endsWith(".md")).sort().map((name) => folder + name));
  }
  return (await Promise.all(pages.map(async (page) => parseBlocks(page, await Deno.readTextFile(new URL(page, ROOT))))))
    .flat();
}

/** Returns the texts of a page's blocks in one language. */
export async function readTexts(page: string, language: string): Promise<string[]> {
  return (await readDocBlocks()).filter((block) => block.page === page && block.language === language)
    .map(({ text }) => text);
}

/**
 * Parses the fenced blocks of a page, also those in lists.
 *
 * @throws {Error} if a block has no end.
 * @see https://spec.commonmark.org/0.31.2/#fenced-code-blocks
 */
export function parseBlocks(page: string, text: string): DocBlock[] {
  const blocks: DocBlock[] = [];
  let open: { block: DocBlock; end: RegExp; indent: RegExp } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open === undefined) {
      const [, before = "", fence, language = ""] = /^((?:[-*+]|\d+[.)]|[ \t])*)(`{3,}|~{3,})\s*([^\s`]*)/.exec(line) ??
        [];
      if (fence === undefined) continue;
      open = {
        block: { page, line: index + 1, language, text: "" },
        end: new RegExp(`^\\s*${fence[0]}{${fence.length},}\\s*$`),
        indent: new RegExp(`^[ \\t]{0,${before.length}}`),
      };
      blocks.push(open.block);
    } else if (open.end.test(line)) open = undefined;
    else open.block.text += `${line.replace(open.indent, "")}\n`;
  }
  if (open !== undefined) throw new Error(`The block in line ${open.block.line} of ${page} has no end`);
  return blocks;
}

/** Reads the commands of shell lines. */
export interface CommandReader extends AsyncDisposable {
  /**
   * Runs the lines in a shell.
   *
   * @returns The calls of the programs, in the order of the lines; those of one pipe in any order.
   * @throws {Error} with the shell's message if it can't read the lines, or they call another program.
   */
  read(text: string): Promise<Command[]>;
}

/**
 * Opens a shell in which programs only note how they are called.
 *
 * @param programs Names. One with a slash, such as `./parlor`, is a file in the current folder.
 * @param env The environment, apart from PATH.
 */
export async function openCommandReader(
  programs: Iterable<string>,
  env: Record<string, string> = {},
): Promise<CommandReader> {
  const folder = await tempFolder();
  const calls = folder.file("calls");
  await Deno.mkdir(folder.file("bin"));
  for (const program of programs) {
    const path = folder.file(program.startsWith("./") ? program : `bin/${program}`);
    await Deno.writeTextFile(path, `#!/bin/sh\nprintf '%s\\0' "$#" '${program}' "$@" >>"$CALLS"\n`, { mode: 0o755 });
  }
  const bash = await findOnPath("bash");
  return {
    async read(text) {
      await Deno.writeTextFile(folder.file("lines.sh"), text);
      await Deno.writeTextFile(calls, "");
      const { stderr } = await new Deno.Command(bash!, {
        args: ["--noprofile", "--norc", folder.file("lines.sh")],
        cwd: folder.path,
        clearEnv: true,
        env: { PATH: folder.file("bin"), CALLS: calls, ...env },
        stdin: "null",
      }).output();
      if (stderr.length > 0) throw new Error(new TextDecoder().decode(stderr));
      const fields = (await Deno.readTextFile(calls)).split("\0").slice(0, -1);
      const commands: Command[] = [];
      for (let at = 0; at < fields.length;) {
        const end = at + 2 + Number(fields[at]);
        commands.push(fields.slice(at + 1, end) as [string]);
        at = end;
      }
      return commands;
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}
