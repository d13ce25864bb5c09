/** The Worker of search.ts. It has a read-only database connection and a key for decryption only. */
import { createOpener, type Opener } from "../../crypto/sealer.ts";
import { getErrorMessage } from "../../errors.ts";
import { openReader, type Reader } from "../../storage/database/database.ts";
import { type DocumentCursor, type DocumentHit, FoldedTexts, scanDocuments } from "./search_text.ts";
import {
  type ConversationTitle,
  PAGE_HITS,
  scan,
  type ScanPage,
  type ScanRequest,
  type SearchHit,
} from "./search_scan.ts";
import { reportDefects } from "../../process/worker.ts";

/** What to search for in conversations, and then in documents. */
export interface FindRequest extends ScanRequest {
  /** False if only conversations are searched. */
  hasDocuments: boolean;
  /** Continues with documents. */
  documentsFrom?: DocumentCursor;
}

/** Hits in order, and where to continue. */
export interface FoundPage extends Omit<ScanPage, "items"> {
  items: (SearchHit | DocumentHit)[];
  nextDocument?: DocumentCursor;
}

/** A message from the serving thread. */
export type SearchOrder =
  | { kind: "open"; path: string; key: Uint8Array<ArrayBuffer>; documentKey: Uint8Array<ArrayBuffer> }
  | { kind: "search"; id: number; request: FindRequest }
  | { kind: "cancel"; id: number }
  | { kind: "close" };

/** A message to the serving thread. A cancelled search gets no response. */
export type SearchWorkerResponse =
  | { kind: "page"; id: number; page: FoundPage }
  | { kind: "failed"; id: number; message: string }
  | { kind: "closed" };

interface Open {
  reader: Reader;
  opener: Opener;
  documentOpener: Opener;
  heads: Map<string, ConversationTitle>;
  folded: FoldedTexts;
}

const searches = new Map<number, AbortController>();
let opening: Promise<Open> | undefined;

async function open({ path, key, documentKey }: SearchOrder & { kind: "open" }): Promise<Open> {
  const [opener, documentOpener] = await Promise.all([createOpener(key), createOpener(documentKey)]);
  return { reader: openReader(path), opener, documentOpener, heads: new Map(), folded: new FoldedTexts() };
}

/** Runs a search. While one waits for decryption, another continues. */
async function search(id: number, request: FindRequest): Promise<void> {
  const controller = new AbortController();
  searches.set(id, controller);
  try {
    respond({ kind: "page", id, page: await find(await opening!, request, controller.signal) });
  } catch (error) {
    if (!controller.signal.aborted) respond({ kind: "failed", id, message: getErrorMessage(error) });
  } finally {
    searches.delete(id);
  }
}

/** Searches conversations, and then documents. */
async function find(source: Open, request: FindRequest, signal: AbortSignal): Promise<FoundPage> {
  const page: FoundPage = request.documentsFrom === undefined ? await scan(source, request, signal) : { items: [] };
  const limit = PAGE_HITS - page.items.length;
  if (!request.hasDocuments || page.next !== undefined || limit <= 0) return page;
  const { reader, documentOpener: opener } = source;
  const { terms, documentsFrom: from } = request;
  const found = await scanDocuments({ reader, opener }, { terms, from, limit }, signal);
  return { ...page, items: [...page.items, ...found.items], nextDocument: found.next };
}

async function close(): Promise<void> {
  for (const controller of searches.values()) controller.abort();
  await opening?.then(({ reader }) => reader.close(), () => {});
  respond({ kind: "closed" });
  self.close();
}

function respond(message: SearchWorkerResponse): void {
  self.postMessage(message);
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = ({ data }: MessageEvent<SearchOrder>) => {
    switch (data.kind) {
      case "open":
        opening = open(data);
        opening.catch(() => {}); // Every search reports it.
        break;
      case "search":
        search(data.id, data.request);
        break;
      case "cancel":
        searches.get(data.id)?.abort();
        break;
      case "close":
        close();
    }
  };
}
