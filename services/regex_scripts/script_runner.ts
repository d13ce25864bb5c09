/** Runs regex scripts on texts: in the sandbox, with a limit of processor time for each script. */
import { Mutex } from "../async/locks.ts";
import { AppError } from "../errors.ts";
import { asArray, asObject } from "../json/type_guards.ts";
import { type Sandbox, SandboxFault, type SandboxFaultReason, type SandboxKind } from "../platform/sandbox/sandbox.ts";
import type { ScriptFault, ScriptJob } from "./regex_script_child.ts";
import { appliesTo, chooseScripts, type RegexScript, type ScriptPurpose, type ScriptText } from "./regex_script.ts";

/** Why a script had no effect: its pattern is invalid, it took too long, or its result is too long. */
export type ScriptProblem = "invalid" | "too_slow" | "too_long";

/** A script that may run, and where it's from. */
export interface ActiveScript {
  script: RegexScript;
  /** Switches it off. */
  switchOff(problem: ScriptProblem): Promise<void>;
}

/** What a run needs besides the texts. */
export interface ScriptRun {
  purpose: ScriptPurpose;
  /** Expands the macros of a text. */
  expand(text: string): string;
}

/** Texts after a run, and the scripts that had no effect. */
export interface ScriptResult {
  texts: string[];
  problems: { name: string; problem: ScriptProblem }[];
}

/** Limits in milliseconds of processor time. */
export interface ScriptLimits {
  /** One script over the texts of one job. */
  scriptMs: number;
  /** All scripts of one job. */
  jobMs: number;
}

/** Those of the lorebooks' patterns. */
const LIMITS: ScriptLimits = { scriptMs: 1_000, jobMs: 3_000 };
const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("./regex_script_child.ts", import.meta.url),
  maxChildren: 1,
  maxCpuMs: 30_000,
  maxResidentBytes: 384 * MIB,
  maxMessageBytes: 16 * MIB,
  maxTextBytes: 16 * MIB,
};
/** Faults of a script that needs too much. */
const SLOW: readonly SandboxFaultReason[] = ["time", "memory", "output"];
/** After this many slow scripts, no others run on these texts. */
const MAX_SLOW = 3;
/** Texts of one job together. */
const MAX_JOB_CHARS = 500_000;
/** Longer texts don't change. */
const MAX_TEXT_CHARS = 500_000;

/** Runs scripts. */
export class ScriptRunner {
  readonly #sandbox: Sandbox;
  readonly #limits: ScriptLimits;
  readonly #lock = new Mutex();

  constructor(sandbox: Sandbox, limits: Partial<ScriptLimits> = {}) {
    this.#sandbox = sandbox;
    this.#limits = { ...LIMITS, ...limits };
  }

  /**
   * Runs all scripts that apply. Never rejects because of a script: one that is too slow or makes a text too long is
   * switched off, and the texts are those without it.
   */
  async run(active: readonly ActiveScript[], texts: readonly ScriptText[], run: ScriptRun): Promise<ScriptResult> {
    const results = texts.map(({ text }) => text);
    const failed = new Map<ActiveScript, ScriptProblem>();
    const scripts = chooseScripts(active, run.purpose);
    const open = texts.map((_, index) => index).filter((index) => {
      const { text } = texts[index]!;
      return text !== "" && text.length <= MAX_TEXT_CHARS &&
        scripts.some(({ script }) => appliesTo(script, texts[index]!));
    });
    for (const batch of batchTexts(open, texts)) {
      await this.#lock.run(() => this.#runBatch(scripts, batch, { texts, results, failed, run }));
    }
    for (const [script, problem] of failed) if (problem !== "invalid") await script.switchOff(problem);
    return {
      texts: results,
      problems: [...failed].map(([{ script }, problem]) => ({
        name: script.name || script.find.slice(0, 100),
        problem,
      })),
    };
  }

  async #runBatch(
    scripts: readonly ActiveScript[],
    batch: readonly number[],
    { texts, results, failed, run }: {
      texts: readonly ScriptText[];
      results: string[];
      failed: Map<ActiveScript, ScriptProblem>;
      run: ScriptRun;
    },
  ): Promise<void> {
    while (true) {
      const chosen = scripts.filter((each) =>
        !failed.has(each) && batch.some((index) => appliesTo(each.script, texts[index]!))
      );
      const slow = [...failed.values()].filter((problem) => problem === "too_slow");
      if (chosen.length === 0 || slow.length >= MAX_SLOW) return;
      const job: ScriptJob = {
        texts: batch.map((index) => texts[index]!.text),
        scripts: chosen.map(({ script }) => ({
          find: expandFind(script, run.expand),
          replace: script.replace,
          trim: script.trim.map((text) => run.expand(text)),
          texts: batch.flatMap((index, at) => appliesTo(script, texts[index]!) ? [at] : []),
        })),
      };
      const { changed, faults, stuck } = await this.#runJob(job, run);
      for (const [index, fault] of faults) failed.set(chosen[index]!, fault);
      if (stuck === undefined) {
        for (const [at, text] of changed) results[batch[at]!] = text;
        return;
      }
      failed.set(chosen[stuck]!, "too_slow");
    }
  }

  /** @returns Also the script that used up the time. */
  async #runJob(
    job: ScriptJob,
    { expand }: ScriptRun,
  ): Promise<{ changed: [number, string][]; faults: [number, ScriptFault][]; stuck?: number }> {
    let current = 0;
    try {
      const { value } = await this.#sandbox.run(KIND, {
        value: job,
        maxCpuMs: this.#limits.jobMs,
        maxStepCpuMs: this.#limits.scriptMs,
        functions: {
          begin: (script, _bytes, { startStep }) => {
            current = Math.min(Number(script) || 0, job.scripts.length - 1);
            startStep();
          },
          expand: (value) => ({
            value: asArray(asObject(value).texts).map((text) => expand(String(text))),
          }),
        },
      });
      return parseResult(value, job);
    } catch (error) {
      if (!(error instanceof SandboxFault)) throw error;
      // Other faults aren't the script's.
      if (!SLOW.includes(error.reason)) throw new AppError("internal", `Can't run the regex scripts: ${error.message}`);
      return { changed: [], faults: [], stuck: current };
    }
  }
}

/** Splits texts into batches of limited size. */
function batchTexts(indexes: readonly number[], texts: readonly ScriptText[]): number[][] {
  const batches: number[][] = [];
  let chars = Infinity;
  for (const index of indexes) {
    const { length } = texts[index]!.text;
    if (chars + length > MAX_JOB_CHARS) {
      batches.push([]);
      chars = 0;
    }
    chars += length;
    batches.at(-1)!.push(index);
  }
  return batches;
}

/** Reads what the child has sent, which may be anything. */
function parseResult(value: unknown, { texts, scripts }: ScriptJob) {
  const { changed, faults } = asObject(value);
  const pairs = (list: unknown) => asArray(list).filter((pair): pair is [number, unknown] => Array.isArray(pair));
  return {
    changed: pairs(changed).filter((pair): pair is [number, string] =>
      Object.hasOwn(texts, pair[0]) && typeof pair[1] === "string"
    ),
    faults: pairs(faults).filter(([index]) => Object.hasOwn(scripts, index)).map(([index, fault]): [
      number,
      ScriptFault,
    ] => [index, fault === "too_long" ? "too_long" : "invalid"]),
  };
}

/** What a macro in a pattern looks like. */
const MACRO = /\{\{[^{}]*\}\}|<(?:user|bot|char|group|charifnotgroup)>/gi;
const ESCAPES: Record<string, string> = { "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\f": "f", "\0": "0" };

function expandFind({ find, findMacros }: RegexScript, expand: (text: string) => string): string {
  if (findMacros === "none") return find;
  // Only whole macros: a backslash before a brace belongs to the pattern.
  return find.replace(MACRO, (macro) => {
    const value = expand(macro);
    if (value === macro || findMacros === "raw") return value;
    return value.replace(/[\n\r\t\v\f\0.^$*+?{}[\]\\/|()]/g, (character) => `\\${ESCAPES[character] ?? character}`);
  });
}
