/** Documents that go out with the next message. */
import { computed, signal } from "@preact/signals";
import type { ApiClient } from "../../api/client.ts";
import type { DocumentUse, Message, StoredDocument } from "../../api/types.ts";

/** One document in the composer. */
export interface AttachedDocument {
  key: number;
  name: string;
  /** Undefined during the upload. */
  document: StoredDocument | undefined;
  use: NonNullable<DocumentUse["use"]>;
  /** With the use `pages`: which, such as `3-5,12`. */
  pages?: DocumentUse["pages"];
}

/** How often to ask whether the text is read. */
const POLL_MS = 700;

/** The documents of one composer. */
export class DocumentAttachments {
  readonly items = signal<AttachedDocument[]>([]);
  /** True during an upload. The server waits for text that is still being read. */
  readonly isBusy = computed(() => this.items.value.some(({ document }) => document === undefined));
  readonly #client: ApiClient;
  #nextKey = 1;

  constructor(client: ApiClient) {
    this.#client = client;
  }

  /** Uploads a file. @throws {ApiError} if the server refuses it. */
  async add(file: File): Promise<void> {
    await this.#send(file.name, uploadDocument(this.#client, file));
  }

  /** Adds a link, which the server fetches. @throws {ApiError} if the server refuses it. */
  async addLink(url: string): Promise<void> {
    const sent = this.#client.send("POST", "/api/documents", { body: { url } });
    await this.#send(url, sent.then((response) => response.json()));
  }

  /** Removes a document from the message. One that was only just uploaded goes to the trash. */
  remove(key: number): void {
    const removed = this.items.peek().find((item) => item.key === key)?.document;
    this.items.value = this.items.peek().filter((item) => item.key !== key);
    if (removed) void this.#client.send("DELETE", `/api/documents/${removed.id}`).catch(() => {});
  }

  /** Chooses what is sent of a document. */
  setUse(key: number, { use = "auto", pages }: Pick<DocumentUse, "use" | "pages">): void {
    this.#change(key, { use, pages });
  }

  /** Empties the list after sending. */
  take(): AttachedDocument[] {
    const taken = this.items.peek();
    this.items.value = [];
    return taken;
  }

  /** Restores documents that could not be sent. */
  putBack(items: readonly AttachedDocument[]): void {
    this.items.value = [...items, ...this.items.peek()];
  }

  async #send(name: string, sent: Promise<StoredDocument>): Promise<void> {
    const key = this.#nextKey++;
    this.items.value = [...this.items.peek(), { key, name, document: undefined, use: "auto" }];
    try {
      this.#change(key, { document: await sent });
    } catch (thrown) {
      this.items.value = this.items.peek().filter((item) => item.key !== key);
      throw thrown;
    }
    await this.#follow(key);
  }

  /** Asks until the text is read. Ends when the message is sent. */
  async #follow(key: number): Promise<void> {
    for (;;) {
      const document = this.items.peek().find((item) => item.key === key)?.document;
      if (document?.state !== "extracting") return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      const response = await this.#client.send("GET", `/api/documents/${document.id}`).catch(() => undefined);
      if (response === undefined) continue; // offline; the next request may get through
      const found = await response.json() as StoredDocument;
      this.#change(key, { document: found, name: found.name });
    }
  }

  #change(key: number, changes: Partial<AttachedDocument>): void {
    this.items.value = this.items.peek().map((item) => item.key === key ? { ...item, ...changes } : item);
  }
}

/** Uploads a file. Its text is read afterward. @throws {ApiError} if the server refuses it. */
export async function uploadDocument(client: ApiClient, file: File): Promise<StoredDocument> {
  const form = new FormData();
  form.append("file", file);
  return await (await client.send("POST", "/api/documents", { form })).json() as StoredDocument;
}

/** Returns how a message names its documents. */
export function toDocumentUses(items: readonly AttachedDocument[]): Message["documents"] {
  const uses = items.flatMap(({ document, use, pages }) =>
    document === undefined ? [] : [{ id: document.id, use, ...(use === "pages" && { pages: pages ?? "" }) }]
  );
  return uses.length === 0 ? undefined : uses;
}
