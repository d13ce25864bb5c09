/** Conversations as tests make them, read them back, and count their rows. */
import { DatabaseSync } from "node:sqlite";
import type { TestApp } from "./test_app.ts";

/** A message as the API shows it. */
export interface StoredMessage {
  id: string;
  role: string;
  content: string;
  status: string;
  [field: string]: unknown;
}

/** A conversation as the API shows it. */
export interface StoredConversation {
  id: string;
  title: string;
  revision: number;
  messages: StoredMessage[];
  [field: string]: unknown;
}

/** Gives the numbers from 0, as many as asked for. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** Makes a message as a client sends it. */
export function say(id: string, content = `says ${id}`, role = "user") {
  return { id, role, content };
}

/** Gives the ids of messages in their order. */
export function idsOf(messages: { id: string }[]): string[] {
  return messages.map(({ id }) => id);
}

/** Fetches a conversation. @throws {Error} when it cannot be had. */
export async function readConversation(app: TestApp, id = "c1"): Promise<StoredConversation> {
  const response = await app.get(`/api/conversations/${id}`);
  if (response.status !== 200) throw new Error(`Conversation "${id}" was answered with ${response.status}`);
  return await response.json();
}

/** Counts the rows of a table, as they are on disk. */
export function countRows(app: TestApp, table: string, where = "true"): number {
  using db = new DatabaseSync(`${app.dataDir}/app.db`, { readOnly: true });
  return Number(db.prepare(`SELECT count(*) AS count FROM ${table} WHERE ${where}`).get()?.count);
}
