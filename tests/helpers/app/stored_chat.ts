/** Helpers to store, read and count conversations in tests. */
import { DatabaseSync } from "node:sqlite";
import type { TestApp } from "./test_app.ts";

/** A message in the API. */
export interface StoredMessage {
  id: string;
  role: string;
  content: string;
  status: string;
  [field: string]: unknown;
}

/** A conversation in the API. */
export interface StoredConversation {
  id: string;
  title: string;
  revision: number;
  messages: StoredMessage[];
  [field: string]: unknown;
}

/** Returns the first `count` integers, starting with 0. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** Creates a message in the format that clients send. */
export function say(id: string, content = `says ${id}`, role = "user") {
  return { id, role, content };
}

/** Returns the ids of messages, in order. */
export function idsOf(messages: { id: string }[]): string[] {
  return messages.map(({ id }) => id);
}

/** Fetches a conversation. @throws {Error} if the request fails. */
export async function readConversation(app: TestApp, id = "c1"): Promise<StoredConversation> {
  const response = await app.get(`/api/conversations/${id}`);
  if (response.status !== 200) throw new Error(`Conversation "${id}" was answered with ${response.status}`);
  return await response.json();
}

/** Counts the rows of a table in the database file. */
export function countRows(app: TestApp, table: string, where = "true"): number {
  using db = new DatabaseSync(`${app.dataDir}/app.db`, { readOnly: true });
  return Number(db.prepare(`SELECT count(*) AS count FROM ${table} WHERE ${where}`).get()?.count);
}
