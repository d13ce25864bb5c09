/** Where the sealed values of conversations belong, for whoever opens them beside their stores. Part of the stored format. */
import type { Place } from "../crypto/sealer.ts";

/** Names one version of a message's stored text. */
export interface VariantName {
  mid: string;
  n: number;
  version: number;
}

/** Gives the place of a block's messages. */
export function blockAad(conversationId: string, block: { id: number; version: number }): Place {
  return { table: "block", id: `${block.id}/${conversationId}`, field: "messages", version: block.version };
}

/** Gives the place of a message's stored text. */
export function variantAad(conversationId: string, { mid, n, version }: VariantName): Place {
  return { table: "variant", id: `${mid}/${n}/${conversationId}`, field: "text", version };
}

/** Gives the place under which such a text was sealed before schema 3, when a message id was all conversations' own. */
export function oldVariantAad({ mid, n, version }: VariantName): Place {
  return { table: "variant", id: `${mid}/${n}`, field: "text", version };
}

/** Gives the place of a revision's record. */
export function revisionAad(conversationId: string, n: number): Place {
  return { table: "revision", id: `${n}/${conversationId}`, field: "record", version: n };
}

/** Gives the place of a conversation's list entry. */
export function summaryAad(conversationId: string, revision: number): Place {
  return { table: "conversation", id: conversationId, field: "summary", version: revision };
}
