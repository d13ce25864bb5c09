/** Learns how far token estimates are off for each model, from the `usage` it reports. */
import { Mutex } from "../../async/keyed_mutex.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { messageOf } from "../../errors.ts";
import type { ChatMessage, Usage } from "../../llm/chat_event.ts";
import type { Log } from "../../log.ts";
import type { Database } from "../../storage/database/database.ts";
import { estimateTokens, MESSAGE_TOKENS, splitContent } from "../../llm/token_estimate.ts";

/** Dependencies of `TokenRatios`. */
export interface TokenRatiosDeps {
  db: Database;
  /** For the purpose "settings". */
  sealer: PurposeSealer;
  log: Log;
}

/** Key in table `setting`. */
const KEY = "token_ratios";
const PLACE = { table: "setting", id: KEY, field: "value", version: 1 };
/** Maximum number of models; the most recently used are kept. */
const MODELS = 200;
/** Below this estimate, the count says more about the template than about the text. */
const MIN_TOKENS = 40;
/** No tokenizer differs more than this. Servers that report otherwise miscount. */
const [LEAST, MOST] = [0.3, 4];
/** Weight of one reply. */
const WEIGHT = 0.3;
/** Smaller changes aren't saved. */
const MIN_CHANGE = 0.02;

/** The learned ratios. */
export class TokenRatios {
  readonly #options: TokenRatiosDeps;
  #ratios: Map<string, number> | undefined;
  #saved = new Map<string, number>();
  readonly #lock = new Mutex();

  constructor(options: TokenRatiosDeps) {
    this.#options = options;
  }

  /** Returns the factor for estimates of a model; 1 if unknown. */
  get(model: string): number {
    return this.#load().get(model) ?? 1;
  }

  /** Learns from reported usage. Prompts with images are ignored, since their tokens can't be estimated. */
  learn(model: string, messages: readonly ChatMessage[], usage: Usage | undefined): void {
    const reported = usage?.prompt_tokens;
    if (typeof reported !== "number" || !Number.isFinite(reported)) return;
    let estimated = 0;
    for (const message of messages) {
      const { text, images } = splitContent(message);
      if (images > 0) return;
      estimated += estimateTokens(text);
    }
    const ratio = (reported - messages.length * MESSAGE_TOKENS) / estimated;
    if (estimated < MIN_TOKENS || !(ratio >= LEAST && ratio <= MOST)) return;
    const ratios = this.#load();
    const known = ratios.get(model);
    const learned = known === undefined ? ratio : known + (ratio - known) * WEIGHT;
    ratios.delete(model); // moves it to the end: the oldest is dropped first
    ratios.set(model, learned);
    if (ratios.size > MODELS) ratios.delete(ratios.keys().next().value!);
    const saved = this.#saved.get(model);
    if (saved === undefined || Math.abs(learned / saved - 1) >= MIN_CHANGE) this.#save();
  }

  /** Waits for pending writes. */
  async close(): Promise<void> {
    await this.#lock.settled();
  }

  #load(): Map<string, number> {
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
      // The ratios are learned again within a few replies.
      log("warn", "What was learned of token counts cannot be read", { error: messageOf(error) });
      return new Map();
    }
  }

  #save(): void {
    const { db, sealer, log } = this.#options;
    this.#saved = new Map(this.#load());
    const sealed = sealer.sealNow(PLACE, JSON.stringify([...this.#saved]));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, 1, ?)";
    this.#lock.run(() => db.write([{ sql, params: [KEY, sealed] }])).catch((error) =>
      log("warn", "What was learned of token counts cannot be saved", { error: messageOf(error) })
    );
  }
}
