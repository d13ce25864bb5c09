/** The additional authenticated data of sealed conversations, for stores and for readers beside them. Part of the stored format. */
import type { Aad } from "../crypto/sealer.ts";

/** Identifies the row of a message's version. */
export interface VariantName {
  mid: string;
  n: number;
  version: number;
}

/** AAD of a block. */
export function blockAad(conversationId: string, block: { id: number; version: number }): Aad {
  return { table: "block", id: `${block.id}/${conversationId}`, field: "messages", version: block.version };
}

/** AAD of a message's version. */
export function variantAad(conversationId: string, { mid, n, version }: VariantName): Aad {
  return { table: "variant", id: `${mid}/${n}/${conversationId}`, field: "text", version };
}

/** AAD of a message's version before schema 3, when message ids were unique across conversations. */
export function oldVariantAad({ mid, n, version }: VariantName): Aad {
  return { table: "variant", id: `${mid}/${n}`, field: "text", version };
}

/** AAD of a revision. */
export function revisionAad(conversationId: string, n: number): Aad {
  return { table: "revision", id: `${n}/${conversationId}`, field: "record", version: n };
}

/** AAD of a conversation's summary. */
export function summaryAad(conversationId: string, revision: number): Aad {
  return { table: "conversation", id: conversationId, field: "summary", version: revision };
}
