/** Parts of a conversation that can't be read. The rest is read without them and says which they are: see docs/decisions. */

/** One part that can't be read. */
export type Damage =
  /** Title, participants and everything else but the messages; what a list shows of them stands in for it. */
  | { part: "head" }
  | { part: "draft" }
  /** Messages that are still stored, side by side behind the message `after`, or at the beginning where that is null. */
  | { part: "messages"; message_ids: string[]; after: string | null }
  /** Versions of these messages other than the active one. */
  | { part: "variants"; message_ids: string[] };
