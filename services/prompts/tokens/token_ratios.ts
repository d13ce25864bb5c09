/** What each model makes of an estimate: learned from the `usage` it reports, so that the next estimate is nearer. */
import { Mutex } from "../../async/keyed_mutex.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { messageOf } from "../../errors.ts";
import type { ChatMessage, Usage } from "../../llm/chat_event.ts";
import type { Log } from "../../log.ts";
import type { Database } from "../../storage/database/database.ts";
import { countedParts, estimateTokens, MESSAGE_TOKENS } from "./token_estimate.ts";

/** What the ratios stand on. */
export interface TokenRatiosOptions {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  log: Log;
}

/** Row of `setting`. */
const KEY = "token_ratios";
const PLACE = { table: "setting", id: KEY, field: "value", version: 1 };
/** Models whose ratio is kept, the ones used last. */
const MODELS = 200;
/** Of fewer estimated tokens a count says more of the template than of the text. */
const LEAST_TOKENS = 40;
/** No tokeniser is further off than this; a server that reports something else miscounts. */
const [LEAST, MOST] = [0.3, 4];
/** How much one reply moves what was known. */
const WEIGHT = 0.3;
/** A smaller move is not worth a write. */
const WORTH_SAVING = 0.02;

/** The learned ratios. */
export class TokenRatios {
  readonly #options: TokenRatiosOptions;
  #ratios: Map<string, number> | undefined;
  #saved = new Map<string, number>();
  readonly #lock = new Mutex();

  constructor(options: TokenRatiosOptions) {
    this.#options = options;
  }

  /** Gives what an estimate for this model is to be multiplied with; 1 while nothing is known. */
  of(model: string): number {
    return this.#all().get(model) ?? 1;
  }

  /** Learns from what a model says it was sent. Of images and tools no characters can be counted: those teach nothing. */
  learn(model: string, messages: readonly ChatMessage[], usage: Usage | undefined): void {
    const reported = usage?.prompt_tokens;
    if (typeof reported !== "number" || !Number.isFinite(reported)) return;
    let estimated = 0;
    for (const message of messages) {
      const { text, images } = countedParts(message);
      if (images > 0) return;
      estimated += estimateTokens(text);
    }
    const ratio = (reported - messages.length * MESSAGE_TOKENS) / estimated;
    if (estimated < LEAST_TOKENS || !(ratio >= LEAST && ratio <= MOST)) return;
    const ratios = this.#all();
    const known = ratios.get(model);
    const learned = known === undefined ? ratio : known + (ratio - known) * WEIGHT;
    ratios.delete(model); // to the end: the first ones go first
    ratios.set(model, learned);
    if (ratios.size > MODELS) ratios.delete(ratios.keys().next().value!);
    const saved = this.#saved.get(model);
    if (saved === undefined || Math.abs(learned / saved - 1) >= WORTH_SAVING) this.#save();
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    await this.#lock.settled();
  }

  #all(): Map<string, number> {
    return this.#ratios ??= this.#read();
  }

  #read(): Map<string, number> {
    const { db, sealer, log } = this.#options;
    try {
      const row = db.get<{ sealed: Uint8Array }>("SELECT sealed FROM setting WHERE key = ?", KEY);
      if (row === undefined) return new Map();
      this.#saved = new Map(JSON.parse(new TextDecoder().decode(sealer.openNow(PLACE, row.sealed))));
      return new Map(this.#saved);
    } catch (error) {
      // They are learned again in a few replies.
      log("warn", "What was learned of token counts cannot be read", { error: messageOf(error) });
      return new Map();
    }
  }

  #save(): void {
    const { db, sealer, log } = this.#options;
    this.#saved = new Map(this.#all());
    const sealed = sealer.sealNow(PLACE, JSON.stringify([...this.#saved]));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
    this.#lock.run(() => db.write([{ sql, params: [KEY, sealed] }])).catch((error) =>
      log("warn", "What was learned of token counts cannot be saved", { error: messageOf(error) })
    );
  }
}
