/** The owner's regex scripts in their order, and which scripts of cards and presets may run. */
import { SealedProfiles } from "../storage/documents/sealed_profiles.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { asArray, isJsonObject } from "../json/type_guards.ts";
import type { Log } from "../log.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import type { Database } from "../storage/database/database.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import { hashScripts, MAX_SCRIPTS, parseTavernScript, parseTavernScripts, type RegexScript } from "./regex_script.ts";
import { type ActiveScript, type ScriptProblem, ScriptRunner } from "./script_runner.ts";

/** Kind of the documents and of change events. */
const REGEX_SCRIPT_KIND = "regex_script";
/** Kind of the documents with decisions about scripts of cards and presets. */
const DECISION_KIND = "regex_script_decision";

/** A stored script. */
interface ScriptContent extends RegexScript {
  /** Its place among the owner's scripts, lowest first. */
  order: number;
  /** Why Parlor switched it off. */
  problem?: ScriptProblem;
}

/** A decision about the scripts of a card or preset, by the hash of their content. */
interface Decision {
  isAccepted: boolean;
  /** Positions of scripts that Parlor switched off. */
  switchedOff?: { index: number; problem: ScriptProblem }[];
}

/** One of the owner's scripts; without content if it can't be decrypted. */
export interface OwnScript {
  id: string;
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
  content?: ScriptContent;
}

/** Values to store. Omitted fields keep their value; `null` removes a depth. */
export type ScriptInput =
  & Partial<Omit<RegexScript, "minDepth" | "maxDepth">>
  & { order?: number; minDepth?: number | null; maxDepth?: number | null };

/** The scripts of a card or preset. */
export interface AttachedScripts {
  kind: "character" | "preset";
  id: string;
  name: string;
  /** See `hashScripts`. */
  hash: string;
  /** `undecided` until the owner accepts or declines them. */
  state: "accepted" | "declined" | "undecided";
  scripts: (RegexScript & { problem?: ScriptProblem })[];
}

/** Where scripts may come from besides the owner. `scripts` is the `regex_scripts` of a card or preset. */
export interface ScriptSource {
  kind: AttachedScripts["kind"];
  id: string;
  name: string;
  scripts: unknown;
}

/** Dependencies. */
export interface RegexScriptsDeps {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  events: EventHub;
  log: Log;
  sandbox: Sandbox;
  now(): number;
}

const DEFAULTS: RegexScript = {
  name: "",
  find: "",
  replace: "",
  trim: [],
  placement: ["ai_output"],
  isEnabled: true,
  isDisplayOnly: false,
  isPromptOnly: false,
  runsOnEdit: false,
  findMacros: "none",
};

/** Opens the store. */
export async function openRegexScripts(deps: RegexScriptsDeps): Promise<RegexScripts> {
  const [scripts, decisions] = await Promise.all([
    SealedProfiles.open<ScriptContent>({ ...deps, kind: REGEX_SCRIPT_KIND, what: "regex script" }),
    SealedProfiles.open<Decision>({
      ...deps,
      kind: DECISION_KIND,
      what: "decision about regex scripts",
      isPublished: false,
    }),
  ]);
  return new RegexScripts(scripts, decisions, deps);
}

/** Stores scripts and decisions, and runs what may run. */
export class RegexScripts {
  readonly runner: ScriptRunner;
  readonly #scripts: SealedProfiles<ScriptContent>;
  readonly #decisions: SealedProfiles<Decision>;
  readonly #events: EventHub;

  /** Use openRegexScripts. */
  constructor(
    scripts: SealedProfiles<ScriptContent>,
    decisions: SealedProfiles<Decision>,
    { sandbox, events }: Pick<RegexScriptsDeps, "sandbox" | "events">,
  ) {
    this.#scripts = scripts;
    this.#decisions = decisions;
    this.#events = events;
    this.runner = new ScriptRunner(sandbox);
  }

  /** Lists the owner's scripts in the order in which they run. */
  list(): OwnScript[] {
    const orderOf = ({ content }: OwnScript) => content?.order ?? Infinity;
    return this.#scripts.list().reverse().sort((a, b) => orderOf(a) - orderOf(b) || a.createdAtMs - b.createdAtMs);
  }

  /** @throws {AppError} `not_found` */
  get(id: string): OwnScript {
    return this.#scripts.get(id);
  }

  /**
   * Creates or changes a script. A new one runs last.
   *
   * @throws {AppError} `revision_mismatch`; `conflict` for an id that differs from another only in case
   */
  async put(
    id: string | undefined,
    input: ScriptInput,
    { expectedVersion, createdAtMs }: { expectedVersion?: ExpectedVersion; createdAtMs?: number } = {},
  ): Promise<{ script: OwnScript; isNew: boolean }> {
    const { record, isNew } = await this.#scripts.put(id, (stored) => {
      const { problem, ...before } = stored ?? { ...DEFAULTS, order: this.#getNextOrder() };
      const { order = before.order, ...changed } = input;
      const isOnlyMoved = Object.values(changed).every((value) => value === undefined);
      // Whoever changes a script that was switched off has mended it, or switches it on again.
      return { ...applyInput(before, changed), order, ...(isOnlyMoved && problem !== undefined && { problem }) };
    }, { expectedVersion, createdAtMs });
    return { script: record, isNew };
  }

  /** @throws {AppError} `not_found`, `revision_mismatch` */
  async remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    await this.#scripts.remove(id, expectedVersion);
  }

  /**
   * Adds the scripts of a file of SillyTavern: one, or a list.
   *
   * @throws {AppError} `unprocessable` if one of them isn't a script
   */
  async importFile(json: unknown): Promise<OwnScript[]> {
    const list = isJsonObject(json) ? [json] : asArray(json);
    const scripts = list.map(parseTavernScript).filter((script) => script !== undefined);
    if (list.length === 0 || scripts.length < list.length) {
      throw new AppError("unprocessable", "Can't read the file: it contains something that isn't a regex script");
    }
    if (list.length > MAX_SCRIPTS) {
      throw new AppError("unprocessable", `Can't read the file: it has more than ${MAX_SCRIPTS} regex scripts`);
    }
    const added: OwnScript[] = [];
    for (const script of scripts) added.push((await this.put(undefined, script)).script);
    return added;
  }

  /** Lists the scripts of cards and presets with the owner's decision; sources without scripts are left out. */
  listAttached(sources: readonly ScriptSource[]): AttachedScripts[] {
    return sources.flatMap(({ scripts: value, ...source }) => {
      const scripts = parseTavernScripts(value);
      if (scripts.length === 0) return [];
      const hash = hashScripts(scripts);
      const decision = this.#decisions.find(hash)?.content;
      const state = decision === undefined ? "undecided" : decision.isAccepted ? "accepted" : "declined";
      return {
        ...source,
        hash,
        state,
        scripts: scripts.map((script, index) => {
          const problem = decision?.switchedOff?.find((each) => each.index === index)?.problem;
          return { ...script, ...(problem && { problem }) };
        }),
      };
    });
  }

  /** Returns a readable script. @throws {AppError} `not_found`; `conflict` if it can't be decrypted */
  getContent(id: string): RegexScript {
    return this.#scripts.getContent(id);
  }

  /** Runs a script that needn't be stored on a text, with the names of a user and a character. */
  async test(
    input: ScriptInput,
    { text, user = "User", char = "Assistant" }: { text: string; user?: string; char?: string },
  ): Promise<{ text: string; problem?: ScriptProblem }> {
    const script: RegexScript = {
      ...applyInput(DEFAULTS, input),
      ...{ isEnabled: true, isDisplayOnly: true, isPromptOnly: false, placement: ["ai_output"] },
    };
    const expand = (written: string) =>
      written.replace(
        /\{\{(user|char)\}\}|<(user|bot|char)>/gi,
        (_, curly?: string, angle?: string) => (curly ?? angle)!.toLowerCase() === "user" ? user : char,
      );
    const { texts, problems } = await this.runner.run(
      [{ script, switchOff: () => Promise.resolve() }],
      [{ text, placement: "ai_output" }],
      { purpose: "display", expand },
    );
    return { text: texts[0]!, ...(problems[0] && { problem: problems[0].problem }) };
  }

  /** Accepts or declines the scripts with a hash. Accepting them again switches on those that were too slow. */
  async decide(hash: string, isAccepted: boolean): Promise<void> {
    await this.#decisions.put(hash, () => ({ isAccepted }));
    this.#events.publish({ kind: REGEX_SCRIPT_KIND, id: hash });
  }

  /** Lists the scripts that may run: the owner's, then those of a preset and of a card that the owner accepted. */
  listActive(sources: readonly ScriptSource[]): ActiveScript[] {
    const own = this.list().flatMap(({ id, content }): ActiveScript[] =>
      content === undefined ? [] : [{
        script: content,
        switchOff: (problem) =>
          this.#scripts.change(id, (stored) => ({ ...stored, isEnabled: false, problem })).catch(ignoreMissing),
      }]
    );
    const attached = this.listAttached(sources).filter(({ state }) => state === "accepted");
    return [
      ...own,
      ...attached.flatMap(({ hash, scripts }) =>
        scripts.flatMap((script, index): ActiveScript[] =>
          script.problem !== undefined ? [] : [{
            script,
            switchOff: (problem) =>
              this.#decisions.change(hash, (stored) => ({
                ...stored,
                switchedOff: [...stored.switchedOff ?? [], { index, problem }],
              })).then(() => this.#events.publish({ kind: REGEX_SCRIPT_KIND, id: hash }), ignoreMissing),
          }]
        )
      ),
    ];
  }

  #getNextOrder(): number {
    return Math.max(0, ...this.#scripts.list().map(({ content }) => content?.order ?? 0)) + 1;
  }
}

/** It may have been deleted while it ran. */
function ignoreMissing(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== "not_found") throw error;
}

/** Returns a script with the fields of an input that are set. */
function applyInput<T extends RegexScript>(
  script: T,
  { minDepth = script.minDepth, maxDepth = script.maxDepth, ...input }: ScriptInput,
): T {
  const { minDepth: _, maxDepth: __, ...rest } = script;
  const given = Object.entries(input).filter(([, value]) => value !== undefined);
  return {
    ...rest,
    ...Object.fromEntries(given),
    ...(typeof minDepth === "number" && { minDepth }),
    ...(typeof maxDepth === "number" && { maxDepth }),
  } as T;
}
