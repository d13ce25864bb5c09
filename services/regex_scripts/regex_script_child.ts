/** Runs regex scripts in the sandbox. */
import { type SandboxHost, serveSandbox } from "../platform/sandbox/child.ts";
import { compileFind, type PreparedScript, replaceMatches, TooLongError } from "./script_text.ts";

/** Texts and the scripts to run on them, one after another. */
export interface ScriptJob {
  texts: string[];
  scripts: (PreparedScript & { texts: number[] })[];
}

/** Why a script didn't run. */
export type ScriptFault = "invalid" | "too_long";

/** The texts that changed, by index, and the scripts that didn't run. */
interface ScriptJobResult {
  changed: [index: number, text: string][];
  faults: [script: number, fault: ScriptFault][];
}

/** Maximum length of all changed texts together. */
const MAX_CHANGED_CHARS = 2_000_000;
const MAY_HAVE_MACROS = /\{\{|\\[{}]|<(?:user|bot|char|group|charifnotgroup)>/i;

async function runJob({ texts, scripts }: ScriptJob, host: SandboxHost): Promise<ScriptJobResult> {
  const changed = new Map<number, string>();
  const faults: ScriptJobResult["faults"] = [];
  for (const [n, script] of scripts.entries()) {
    // Parlor measures each script by itself.
    host.send("begin", n);
    const pattern = compileFind(script.find);
    if (pattern === undefined) {
      faults.push([n, "invalid"]);
      continue;
    }
    try {
      const replaced = replaceIn(script, pattern, (index) => changed.get(index) ?? texts[index]!);
      await expandReplacements(n, replaced, host);
      for (const [index, pieces] of replaced) changed.set(index, pieces.join(""));
    } catch (error) {
      if (!(error instanceof TooLongError)) throw error;
      faults.push([n, "too_long"]);
    }
  }
  return { changed: [...changed], faults };
}

/** @throws {TooLongError} */
function replaceIn(
  script: ScriptJob["scripts"][number],
  pattern: RegExp,
  getText: (index: number) => string,
): Map<number, string[]> {
  const replaced = new Map<number, string[]>();
  let chars = 0;
  for (const index of script.texts) {
    const pieces = replaceMatches(getText(index), pattern, script);
    if (pieces === undefined) continue;
    for (const piece of pieces) chars += piece.length;
    if (chars > MAX_CHANGED_CHARS) throw new TooLongError();
    replaced.set(index, pieces);
  }
  return replaced;
}

/** Expands the macros in replacements, where Parlor has their values. */
async function expandReplacements(script: number, replaced: Map<number, string[]>, host: SandboxHost): Promise<void> {
  const places: { pieces: string[]; at: number }[] = [];
  for (const pieces of replaced.values()) {
    for (let at = 1; at < pieces.length; at += 2) if (MAY_HAVE_MACROS.test(pieces[at]!)) places.push({ pieces, at });
  }
  if (places.length === 0) return;
  const { value } = await host.call("expand", { script, texts: places.map(({ pieces, at }) => pieces[at]) });
  for (const [n, { pieces, at }] of places.entries()) pieces[at] = (value as string[])[n]!;
}

await serveSandbox("regex_script_child", {
  async run(value, _bytes, host) {
    return { value: await runJob(value as ScriptJob, host) };
  },
});
