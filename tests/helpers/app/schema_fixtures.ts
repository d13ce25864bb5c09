/** Databases of earlier schemas with sealed data, as SQL text. */
import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import { type Aad, createSealer } from "../../../services/crypto/sealer.ts";
import { MIGRATIONS } from "../../../services/storage/database/migrations.ts";

/** The storage key that every fixture was sealed with. */
export const FIXTURE_KEY = new Uint8Array(32).map((_, index) => index + 1);

/** Folder of the fixtures. */
export const FIXTURE_FOLDER = new URL("../../fixtures/schemas/", import.meta.url);

const AT_MS = 1_767_225_600_000;
const MESSAGES = [
  { id: "m1", role: "user", content: "Is anybody there?", status: "complete" },
  {
    id: "m2",
    role: "assistant",
    content: "Since the first schema.",
    status: "complete",
    active_variant: 0,
    variant_count: 1,
  },
].map((message) => ({ ...message, created_at: "2026-01-01T00:00:00.000Z", updated_at: "2026-01-01T00:00:00.000Z" }));

/** Returns a fixture: the schema of that version, and rows that all versions have. */
export function schemaFixture(version: number): string {
  using database = new DatabaseSync(":memory:");
  for (const migration of MIGRATIONS.filter((migration) => migration.version <= version)) database.exec(migration.sql);
  const statements = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").all();
  return [
    ...statements.map(({ sql }) => `${sql};`),
    ...rows(),
    `PRAGMA user_version = ${version};`,
    "",
  ].join("\n");
}

/** Returns the normalized statements of a database's schema. */
export function schemaOf(database: DatabaseSync): string[] {
  return database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name").all()
    .map(({ sql }) => String(sql).replace(/\s+/g, " "));
}

function rows(): string[] {
  const sealer = createSealer(FIXTURE_KEY);
  const seal = (purpose: string, place: Aad, value: unknown) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `x'${Buffer.from(sealer.forPurpose(purpose).sealNow(place, text)).toString("hex")}'`;
  };
  const chat = (table: string, id: string, field: string, version: number, value: unknown) =>
    seal("conversations", { table, id, field, version }, value);
  const head = { title: "Kept since then", participants: [] };
  const at = new Date(AT_MS).toISOString();
  const about = { created_at: at, updated_at: at, revision: 1, message_count: 2, snippet: "", character_ids: [] };
  const summary = { id: "c1", title: "Kept since then", ...about };
  const key = { value: "sk-kept", origin: "http://127.0.0.1:9" };
  const connection = { name: "Kept", kind: "openai", baseUrl: "http://127.0.0.1:9", model: "m", key };
  return [
    `INSERT INTO setting VALUES('storage_key_check', 1, ${
      seal("key-check", { table: "setting", id: "storage_key_check", field: "sealed", version: 1 }, "parlor")
    });`,
    `INSERT INTO conversation VALUES('c1', 1, ${AT_MS}, ${AT_MS}, 2, ${chat("conversation", "c1", "head", 1, head)}, ${
      chat("conversation", "c1", "summary", 1, summary)
    }, NULL);`,
    `INSERT INTO block(id, version, conversation_id, position, live, kept, message_count, sealed) VALUES(1, 1, 'c1', 1.0, 1, 0, 2, ${
      chat("block", "1/c1", "messages", 1, MESSAGES.map((message) => JSON.stringify(message)).join(","))
    });`,
    ...MESSAGES.map(({ id }) => `INSERT INTO message(mid, conversation_id, block_id) VALUES('${id}', 'c1', 1);`),
    `INSERT INTO draft VALUES('c1', 1, ${chat("draft", "c1", "text", 1, JSON.stringify("half a thought"))});`,
    `INSERT INTO document VALUES('connection', 'kept', 1, ${AT_MS}, ${AT_MS}, ${
      seal("connections", { table: "document", id: "connection/kept", field: "sealed", version: 1 }, connection)
    });`,
  ];
}
