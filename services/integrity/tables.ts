/** Which item each row of the database belongs to. */
import type { DatabaseSync } from "node:sqlite";

/** Rows of a table. */
interface TableOwner {
  /** What its rows belong to: the folder of the item's path. */
  folder: string;
  /** Column with the item's ID; absent if all rows of the table are one item with the table's name. */
  id?: string;
  /** True if the item is gone without its row in this table. */
  isHead?: boolean;
}

/** Name of the folder in paths of what belongs to no single thing that the owner knows. */
export const DATABASE = "database";

/** Folders of the rows of table `document` by their kind, as in exports. */
const DOCUMENT_FOLDERS: Readonly<Record<string, string>> = {
  lorebook: "lorebooks",
  preset: "presets",
  memory: "memories",
  memory_proposal: "memory_proposals",
  connection: "connections",
  image_connection: "image_connections",
  tool_server: "tool_servers",
  generated_image: "images",
  voice: "voices",
  usage: "usage",
  chat_usage: "usage",
};

const FOLDERS_OF_KINDS = Object.entries(DOCUMENT_FOLDERS).map(([kind, folder]) => `WHEN '${kind}' THEN '${folder}'`);

/** Returns the path of a row of table `document`. */
export function toDocumentPath(kind: string, id: string): string {
  return `${DOCUMENT_FOLDERS[kind] ?? kind.replaceAll("/", "-")}/${id}`;
}

const conversation: TableOwner = { folder: "conversations", id: "conversation_id" };
const single: TableOwner = { folder: DATABASE };

/** All tables. Those that can be made again from files are left out. */
export const TABLES: Readonly<Record<string, TableOwner>> = {
  conversation: { folder: "conversations", id: "id", isHead: true },
  block: conversation,
  message: conversation,
  variant: conversation,
  draft: conversation,
  revision: conversation,
  reply: conversation,
  change: conversation,
  continuation: conversation,
  tool_call: conversation,
  tool_permission: conversation,
  reply_resume: conversation,
  unread: conversation,
  message_queue: conversation,
  /** The folder follows from the kind. */
  document: { folder: "", id: "id", isHead: true },
  document_file: { folder: "documents", id: "id", isHead: true },
  document_text: { folder: "documents", id: "document_id" },
  attachment: { folder: "attachments", id: "name", isHead: true },
  attachment_ref: single,
  document_use: single,
  setting: { folder: "settings", id: "key", isHead: true },
  job: { folder: "jobs", id: "id", isHead: true },
  trash: { folder: "trash", id: "id", isHead: true },
  session: single,
  stored_response: single,
};

/**
 * Returns the SQL of the path of a row's item, such as `conversations/abc`.
 *
 * @param row Prefix of the columns: `"NEW."` in a trigger.
 */
export function getPathSql(table: string, row = ""): string {
  const { folder, id } = TABLES[table]!;
  if (id === undefined) return `'${folder}/${table}'`;
  if (folder !== "") return `'${folder}/' || ${row}${id}`;
  return `(CASE ${row}kind ${FOLDERS_OF_KINDS.join(" ")} ELSE replace(${row}kind, '/', '-') END) || '/' || ${row}${id}`;
}

/** The columns of a table. */
export interface TableColumns {
  /** Names of the primary key. */
  key: string[];
  /** All names. */
  all: string[];
  /** Names of those that aren't sealed. */
  plain: string[];
  /** Names of those that are sealed. */
  sealed: string[];
}

/** Reads the columns of a table from its schema. @throws SQLite's errors */
export function readColumns(database: DatabaseSync, table: string): TableColumns {
  const found = database.prepare("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid").all(table) as {
    name: string;
    type: string;
    pk: number;
  }[];
  const sealed = found.filter(({ type }) => type === "BLOB").map(({ name }) => name);
  return {
    key: found.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk).map(({ name }) => name),
    all: found.map(({ name }) => name),
    plain: found.map(({ name }) => name).filter((name) => !sealed.includes(name)),
    sealed,
  };
}
