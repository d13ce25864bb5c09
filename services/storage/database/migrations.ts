/** All schema versions, oldest first. Released migrations are never edited; new ones are added. */

/** One migration. */
export interface Migration {
  /** Schema version after it (`PRAGMA user_version`); starts at 1 without gaps. */
  version: number;
  /** SQL, run inside the transaction of the whole upgrade. */
  sql: string;
}

/** The program's schema. `sealed`, `head` and `summary` contain encrypted values; times are milliseconds since 1970. */
export const MIGRATIONS: Migration[] = [
  {
    version: 1,
    sql: `
      CREATE TABLE conversation(
        id TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        message_count INTEGER NOT NULL,
        head BLOB NOT NULL,
        summary BLOB NOT NULL,
        deleted_at INTEGER
      ) STRICT;
      CREATE INDEX conversation_by_time ON conversation(updated_at DESC, id) WHERE deleted_at IS NULL;
      CREATE UNIQUE INDEX conversation_by_folded_id ON conversation(lower(id));

      -- A block is copied when it changes: live = 1 is the present version, kept = 1 one that a revision refers to.
      CREATE TABLE block(
        id INTEGER NOT NULL,
        version INTEGER NOT NULL,
        conversation_id TEXT NOT NULL,
        position REAL NOT NULL,
        live INTEGER NOT NULL,
        kept INTEGER NOT NULL DEFAULT 0,
        message_count INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(id, version)
      ) STRICT;
      CREATE INDEX block_by_position ON block(conversation_id, position) WHERE live = 1;

      -- Message ids are unique over all conversations.
      CREATE TABLE message(
        mid TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        block_id INTEGER NOT NULL,
        PRIMARY KEY(mid)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX message_by_conversation ON message(conversation_id);

      CREATE TABLE variant(
        conversation_id TEXT NOT NULL,
        mid TEXT NOT NULL,
        n INTEGER NOT NULL,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(mid, n)
      ) STRICT;
      CREATE INDEX variant_by_conversation ON variant(conversation_id);

      CREATE TABLE draft(
        conversation_id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;

      -- kind 'blocks': sealed holds the head and the block list; kind 'message': that message's old record.
      CREATE TABLE revision(
        conversation_id TEXT NOT NULL,
        n INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        cause TEXT NOT NULL,
        message_count INTEGER NOT NULL,
        kind TEXT NOT NULL CHECK(kind IN ('blocks', 'message')),
        sealed BLOB NOT NULL,
        PRIMARY KEY(conversation_id, n)
      ) STRICT;

      CREATE TABLE reply(
        mid TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL,
        generation TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        ended_at INTEGER
      ) STRICT;

      CREATE TABLE attachment(
        name TEXT PRIMARY KEY,
        type TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        width INTEGER,
        height INTEGER,
        created_at INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE attachment_ref(
        name TEXT NOT NULL,
        owner_kind TEXT NOT NULL,
        owner_id TEXT NOT NULL,
        PRIMARY KEY(name, owner_kind, owner_id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX attachment_ref_by_owner ON attachment_ref(owner_kind, owner_id);

      CREATE TABLE session(
        id TEXT PRIMARY KEY,
        rp_id TEXT NOT NULL,
        credential_id TEXT NOT NULL,
        issued_at INTEGER NOT NULL,
        seen_at INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX session_by_credential ON session(credential_id);

      CREATE TABLE setting(
        key TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;

      -- Small sealed documents: connections, presets, lorebooks, image profiles.
      CREATE TABLE document(
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(kind, id)
      ) STRICT;

      -- sealed holds title, progress, error and parameters; updated_at is bound into it as its version.
      CREATE TABLE job(
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;

      CREATE TABLE card_file(
        id TEXT PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        mtime_ms INTEGER NOT NULL,
        size INTEGER NOT NULL,
        head BLOB NOT NULL
      ) STRICT;

      CREATE TABLE trash(
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        deleted_at INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;
    `,
  },
  {
    version: 2,
    // Metadata of plain files, so nothing is encrypted. No name if the file is unreadable.
    sql: `
      DROP TABLE card_file;
      CREATE TABLE card_file(
        id TEXT PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        mtime_ms INTEGER NOT NULL,
        size INTEGER NOT NULL,
        external INTEGER NOT NULL,
        has_avatar INTEGER NOT NULL,
        name TEXT,
        search TEXT NOT NULL,
        item TEXT NOT NULL
      ) STRICT;
      CREATE UNIQUE INDEX card_file_by_folded_id ON card_file(lower(id));
      CREATE INDEX card_file_by_name ON card_file(name, id) WHERE name IS NOT NULL;
      CREATE INDEX card_file_by_time ON card_file(mtime_ms DESC, id) WHERE name IS NOT NULL;
      CREATE TABLE card_tag(
        tag TEXT NOT NULL,
        id TEXT NOT NULL,
        PRIMARY KEY(tag, id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX card_tag_by_id ON card_tag(id);
    `,
  },
  {
    version: 3,
    // Message ids are unique only within their conversation.
    sql: `
      CREATE TABLE new_message(
        conversation_id TEXT NOT NULL,
        mid TEXT NOT NULL,
        block_id INTEGER NOT NULL,
        PRIMARY KEY(conversation_id, mid)
      ) STRICT, WITHOUT ROWID;
      INSERT INTO new_message SELECT conversation_id, mid, block_id FROM message;
      DROP TABLE message;
      ALTER TABLE new_message RENAME TO message;

      CREATE TABLE new_variant(
        conversation_id TEXT NOT NULL,
        mid TEXT NOT NULL,
        n INTEGER NOT NULL,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(conversation_id, mid, n)
      ) STRICT;
      INSERT INTO new_variant SELECT conversation_id, mid, n, version, sealed FROM variant;
      DROP TABLE variant;
      ALTER TABLE new_variant RENAME TO variant;

      CREATE TABLE new_reply(
        mid TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        generation TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        ended_at INTEGER,
        PRIMARY KEY(mid, conversation_id)
      ) STRICT;
      INSERT INTO new_reply SELECT mid, conversation_id, generation, started_at, ended_at FROM reply;
      DROP TABLE reply;
      ALTER TABLE new_reply RENAME TO reply;
    `,
  },
  {
    version: 4,
    // The sort keys changed: the next list scans the files again.
    sql: `
      DELETE FROM card_tag;
      DELETE FROM card_file;
    `,
  },
  {
    version: 5,
    sql: `
      -- The version that was active before a reply was written again; it stays active where that fails.
      ALTER TABLE reply ADD COLUMN previous_variant INTEGER;

      -- What each revision changed, in the clear as message ids are: JSON {added, changed, removed, order}.
      CREATE TABLE change(
        conversation_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY(conversation_id, revision)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    version: 6,
    // A user message can have versions, each with its own continuation: docs/decisions/0031-conversation-tree.md.
    sql: `
      ALTER TABLE block ADD COLUMN segment INTEGER NOT NULL DEFAULT 0;
      DROP INDEX block_by_position;
      CREATE INDEX block_by_position ON block(conversation_id, segment, position) WHERE live = 1;
      CREATE TABLE continuation(
        conversation_id TEXT NOT NULL,
        mid TEXT NOT NULL,
        n INTEGER NOT NULL,
        segment INTEGER NOT NULL,
        is_active INTEGER NOT NULL,
        PRIMARY KEY(conversation_id, mid, n)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    version: 7,
    // Files and links whose text is sent to models. document_use has the documents attached to characters and personas.
    sql: `
      CREATE TABLE document_file(
        id TEXT PRIMARY KEY,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        deleted_at INTEGER,
        sealed BLOB NOT NULL
      ) STRICT;
      CREATE INDEX document_file_by_time ON document_file(created_at DESC, id) WHERE deleted_at IS NULL;
      CREATE TABLE document_text(
        document_id TEXT NOT NULL,
        part INTEGER NOT NULL,
        first_page INTEGER NOT NULL,
        last_page INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(document_id, part)
      ) STRICT;
      CREATE TABLE document_use(
        owner_kind TEXT NOT NULL,
        owner_id TEXT NOT NULL,
        uses TEXT NOT NULL,
        PRIMARY KEY(owner_kind, owner_id)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    version: 8,
    // Tool calls with their arguments and results, permissions per chat, and the state of replies that wait for a
    // decision.
    sql: `
      CREATE TABLE tool_call(
        id INTEGER PRIMARY KEY,
        conversation_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        call_id TEXT NOT NULL,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        UNIQUE(conversation_id, call_id)
      ) STRICT;
      CREATE INDEX tool_call_by_message ON tool_call(conversation_id, message_id);
      CREATE INDEX tool_call_by_call ON tool_call(call_id);
      CREATE TABLE tool_permission(
        conversation_id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE reply_resume(
        conversation_id TEXT NOT NULL,
        mid TEXT NOT NULL,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY(conversation_id, mid)
      ) STRICT, WITHOUT ROWID;
    `,
  },
  {
    version: 9,
    // Lists show favorites: the next list scans the files again.
    sql: `
      DELETE FROM card_tag;
      DELETE FROM card_file;
    `,
  },
  {
    version: 10,
    // Lists show folders and can have favorites first: the next list scans the files again.
    sql: `
      DELETE FROM card_tag;
      DELETE FROM card_file;
      CREATE INDEX card_file_by_favorite ON card_file((1 - (item ->> '$.favorite')) || name, id) WHERE name IS NOT NULL;
      CREATE INDEX card_file_by_folder ON card_file(item ->> '$.folder')
        WHERE name IS NOT NULL AND item ->> '$.folder' IS NOT NULL;
    `,
  },
  {
    version: 11,
    // Responses of the Responses API and their items, for a day. `owner` is the ID of a limited token, or empty.
    sql: `
      CREATE TABLE stored_response(
        id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;
      CREATE INDEX stored_response_by_time ON stored_response(expires_at);
      CREATE INDEX stored_response_by_owner ON stored_response(owner);
    `,
  },
  {
    version: 12,
    // Searches find what can't be typed: the next list scans the files again.
    sql: `
      DELETE FROM card_tag;
      DELETE FROM card_file;
    `,
  },
  {
    version: 13,
    // Lists have unreadable cards: the next list scans the files again.
    sql: `
      DELETE FROM card_tag;
      DELETE FROM card_file;
    `,
  },
  {
    version: 14,
    // The manifest has a keyed sum of the plain columns of each item's rows: docs/decisions/0051-manifest.md. The writer
    // fills it.
    sql: `
      CREATE TABLE manifest(
        path TEXT PRIMARY KEY,
        row_count INTEGER NOT NULL,
        sum TEXT NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX block_by_conversation ON block(conversation_id);
      CREATE INDEX reply_by_conversation ON reply(conversation_id);
    `,
  },
  {
    version: 15,
    // One index finds the present blocks of a chat in order, and all of them. With two, a change wrote a page more, and
    // SQLite looked for present blocks among all that revisions have.
    sql: `
      DROP INDEX block_by_conversation;
      DROP INDEX block_by_position;
      CREATE INDEX block_by_position ON block(conversation_id, live, segment, position);
    `,
  },
  {
    version: 16,
    // Chats with an unread reply.
    sql: `
      CREATE TABLE unread(
        conversation_id TEXT PRIMARY KEY,
        since INTEGER NOT NULL
      ) STRICT;
    `,
  },
  {
    version: 17,
    // Messages that wait for the end of a reply: docs/decisions/0063-message-queue.md.
    sql: `
      CREATE TABLE message_queue(
        conversation_id TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        sealed BLOB NOT NULL
      ) STRICT;
    `,
  },
];
