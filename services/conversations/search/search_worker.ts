/** The Worker of search.ts. It has a read-only database connection and a key that can only decrypt. */
import { createOpener, type Opener } from "../../crypto/sealer.ts";
import { messageOf } from "../../errors.ts";
import { openReader, type Reader } from "../../storage/database/reader.ts";
import { type ConversationAbout, scan, type ScanPage, type ScanRequest } from "./search_scan.ts";

/** A message from the serving thread. */
export type SearchOrder =
  | { kind: "open"; path: string; key: Uint8Array<ArrayBuffer> }
  | { kind: "search"; id: number; request: ScanRequest }
  | { kind: "cancel"; id: number }
  | { kind: "close" };

/** A message to the serving thread. A cancelled search has no answer. */
export type SearchAnswer =
  | { kind: "page"; id: number; page: ScanPage }
  | { kind: "failed"; id: number; message: string }
  | { kind: "closed" };

interface Open {
  reader: Reader;
  opener: Opener;
  heads: Map<string, ConversationAbout>;
}

const searches = new Map<number, AbortController>();
let opening: Promise<Open> | undefined;

async function open(path: string, key: Uint8Array<ArrayBuffer>): Promise<Open> {
  const opener = await createOpener(key);
  return { reader: openReader(path), opener, heads: new Map() };
}

/** The running searches. While one waits for its blocks to be opened, another continues. */
async function search(id: number, request: ScanRequest): Promise<void> {
  const controller = new AbortController();
  searches.set(id, controller);
  try {
    answer({ kind: "page", id, page: await scan(await opening!, request, controller.signal) });
  } catch (error) {
    if (!controller.signal.aborted) answer({ kind: "failed", id, message: messageOf(error) });
  } finally {
    searches.delete(id);
  }
}

async function close(): Promise<void> {
  for (const controller of searches.values()) controller.abort();
  await opening?.then(({ reader }) => reader.close(), () => {});
  answer({ kind: "closed" });
  self.close();
}

function answer(message: SearchAnswer): void {
  self.postMessage(message);
}

// Only in a Worker. Importing this file elsewhere does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<SearchOrder>) => {
    switch (data.kind) {
      case "open":
        opening = open(data.path, data.key);
        opening.catch(() => {}); // every search reports it
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
