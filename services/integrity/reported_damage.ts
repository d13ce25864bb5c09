/** Damage that services meet: collected until it has been checked. */
import type { Aad } from "../crypto/sealer.ts";
import { toDocumentPath } from "./tables.ts";

/** Collects the paths of what couldn't be opened. */
export class DamageReports {
  readonly #paths = new Set<string>();
  #listen: (() => void) | undefined;

  /** Reports an item. @param path As in `Damage` */
  report(path: string): void {
    this.#paths.add(path);
    this.#listen?.();
  }

  /** Reports a sealed value that couldn't be opened. Whether it's really damaged is checked later. */
  reportSealed(aad: Aad): void {
    const path = toPath(aad);
    if (path !== undefined) this.report(path);
  }

  /** Returns the reports since the last call. */
  take(): string[] {
    const paths = [...this.#paths];
    this.#paths.clear();
    return paths;
  }

  /** Sets the function to call after each report; at once if there are any. */
  listen(listener: () => void): void {
    this.#listen = listener;
    if (this.#paths.size > 0) listener();
  }
}

const OF_CONVERSATIONS = [
  "conversation",
  "block",
  "variant",
  "draft",
  "revision",
  "tool_call",
  "tool_permission",
  "reply_resume",
  "message_queue",
];

/** Returns the path of a sealed value's item; `undefined` if it belongs to none. */
function toPath({ table, id }: Aad): string | undefined {
  if (OF_CONVERSATIONS.includes(table)) return `conversations/${id.slice(id.lastIndexOf("/") + 1)}`;
  switch (table) {
    case "document":
      return toDocumentPath(id.slice(0, id.indexOf("/")), id.slice(id.indexOf("/") + 1));
    case "setting":
      return `settings/${id}`;
    case "job":
      return `jobs/${id}`;
    case "document_file":
    case "documents":
      return `documents/${id}`;
    case "document_text":
      return `documents/${id.split("/")[0]}`;
    case "attachments":
    case "trash":
      return `${table}/${id}`;
    case "credentials.json":
    case "tokens.json":
      return table;
  }
}
