/** How a document is stored: two sealed values in one, and a cache of opened bodies. */
import type { Aad } from "../../crypto/sealer.ts";

/** Key of a row in the table `document`. */
export interface SealedDocumentRow {
  kind: string;
  id: string;
}

const LENGTH_BYTES = 4;
/** Prefix of the kind of a row in the trash. */
const REMOVED = "removed ";

/**
 * Returns the row of a document in the trash. @param entry Id of the trash item: the same id can be removed more than
 * once.
 */
export function removedRow({ kind, id }: SealedDocumentRow, entry: string): SealedDocumentRow {
  return { kind: REMOVED + kind, id: `${id}/${entry}` };
}

/** Returns the additional authenticated data of a part. A row in the trash keeps the one it was sealed with. */
export function partAad({ kind, id }: SealedDocumentRow, field: "head" | "body", version: number): Aad {
  const isRemoved = kind.startsWith(REMOVED);
  const name = isRemoved ? `${kind.slice(REMOVED.length)}/${id.split("/")[0]}` : `${kind}/${id}`;
  return { table: "document", id: name, field, version };
}

/** Joins a sealed head and a sealed body. */
export function joined(head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(LENGTH_BYTES + head.length + body.length);
  new DataView(whole.buffer).setUint32(0, head.length);
  whole.set(head, LENGTH_BYTES);
  whole.set(body, LENGTH_BYTES + head.length);
  return whole;
}

/** Returns how many bytes are needed to open the head; infinite if the data isn't a sealed document. */
export function wholeHeadBytes(begin: Uint8Array): number {
  return begin.length < LENGTH_BYTES ? Infinity : LENGTH_BYTES + headLength(begin);
}

/** Returns the sealed head. @param begin The whole value, or its first bytes. */
export function openHead(begin: Uint8Array): Uint8Array {
  return begin.subarray(LENGTH_BYTES, LENGTH_BYTES + headLength(begin));
}

/** Returns the sealed body. */
export function openBody(whole: Uint8Array): Uint8Array {
  return whole.subarray(Math.min(whole.length, LENGTH_BYTES + headLength(whole)));
}

function headLength(begin: Uint8Array): number {
  return begin.length < LENGTH_BYTES ? 0 : new DataView(begin.buffer, begin.byteOffset).getUint32(0);
}

const MAX_BYTES = 32 * 1024 * 1024;

interface Entry<Body> {
  version: number;
  body: Body;
  /** About the length of its JSON. */
  bytes: number;
}

/** Bodies by id, one version each. */
export class BodyCache<Body> {
  readonly #entries = new Map<string, Entry<Body>>();
  #bytes = 0;

  /** Returns the body of exactly this version. */
  get(id: string, version: number): Body | undefined {
    const entry = this.#entries.get(id);
    if (entry?.version !== version) return undefined;
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    return entry.body;
  }

  set(id: string, entry: Entry<Body>): void {
    this.delete(id);
    if (entry.bytes > MAX_BYTES) return;
    this.#entries.set(id, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.delete(oldest);
    }
  }

  delete(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    this.#bytes -= entry.bytes;
  }
}
