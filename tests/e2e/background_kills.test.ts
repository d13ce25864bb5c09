/**
 * Work in the background through kill -9: imports of each kind, downloads of Ollama, and what models are asked between
 * replies. Downloads of models: download_through_kills.test.ts.
 * @slow Each kind starts the server twice.
 */
import { zipSync } from "fflate";
import { expect, test } from "vitest";
import type { ImportKind } from "../../services/import_export/import_item.ts";
import { gather, until, useModel } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { jsonFile } from "../helpers/app/imported.ts";
import { range, say } from "../helpers/app/stored_chat.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openFakeOllama } from "../helpers/fakes/llm/fake_ollama.ts";
import { agnaiFolder } from "../helpers/files/agnai_files.ts";
import { risuFolder } from "../helpers/files/risu_files.ts";
import { isLong } from "../helpers/files/sample.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { lines, tavernFolder } from "../helpers/files/tavern_folder.ts";

type Files = Record<string, Uint8Array<ArrayBuffer>>;
type Json = Record<string, unknown>;

const CHATS = 150;
const texts = (n: number) => range(20).map((at) => `${n}/${at} ${"word ".repeat(40)}`);

/** Creates one file of each chat. */
function chatFiles(name: (n: number) => string, create: (n: number) => unknown): Files {
  return Object.fromEntries(range(CHATS).map((n) => [name(n), jsonFile(create(n))]));
}

function tavernChat(n: number): Uint8Array<ArrayBuffer> {
  const said = texts(n).map((mes, at) => ({
    name: "Fox",
    is_user: at % 2 === 0,
    mes,
    send_date: 1_700_000_000_000 + at,
  }));
  return lines([{ user_name: "Ann", character_name: "Fox" }, ...said]);
}

/** An import of each kind: some hundred chats, or the folder that other tests read. */
const IMPORTS: Record<ImportKind, () => Files> = {
  tavern: () => Object.fromEntries(range(CHATS).map((n) => [`chat-${n}.jsonl`, tavernChat(n)])),
  sillytavern: () => ({
    ...tavernFolder(),
    ...Object.fromEntries(range(CHATS).map((n) => [`chats/Fox/more-${n}.jsonl`, tavernChat(n)])),
  }),
  risuai: () => risuFolder() as Files,
  agnai: () => agnaiFolder(),
  chatgpt: () => ({
    "conversations.json": jsonFile(
      range(CHATS).map((n) => {
        const said = texts(n);
        const mapping = Object.fromEntries(said.map((text, at) => [`m${at}`, {
          id: `m${at}`,
          parent: at === 0 ? null : `m${at - 1}`,
          children: at + 1 < said.length ? [`m${at + 1}`] : [],
          message: {
            author: { role: at % 2 === 0 ? "user" : "assistant" },
            create_time: 1_700_000_000 + at,
            content: { content_type: "text", parts: [text] },
          },
        }]));
        return { title: `Chat ${n}`, conversation_id: `k${n}`, current_node: `m${said.length - 1}`, mapping };
      }),
    ),
  }),
  claude: () => ({
    "users.json": jsonFile([]),
    "conversations.json": jsonFile(
      range(CHATS).map((n) => ({
        uuid: `c${n}`,
        name: `Chat ${n}`,
        created_at: "2025-01-02T03:04:05.678901Z",
        chat_messages: texts(n).map((text, at) => ({
          uuid: `${n}-${at}`,
          sender: at % 2 === 0 ? "human" : "assistant",
          text,
          ...(at > 0 && { parent_message_uuid: `${n}-${at - 1}` }),
        })),
      })),
    ),
  }),
  openwebui: () => ({
    "chats.json": jsonFile(
      range(CHATS).map((n) => ({
        id: `o${n}`,
        title: `Chat ${n}`,
        chat: { messages: texts(n).map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })) },
      })),
    ),
  }),
  librechat: () =>
    chatFiles((n) => `chat-${n}.json`, (n) => ({
      conversationId: `l${n}`,
      title: `Chat ${n}`,
      messages: texts(n).map((text, at) => ({
        messageId: `${n}-${at}`,
        isCreatedByUser: at % 2 === 0,
        text,
        ...(at > 0 && { parentMessageId: `${n}-${at - 1}` }),
      })),
    })),
  lobechat: () => ({
    "lobe.json": jsonFile({
      exportType: "sessions",
      state: {
        sessions: [{ id: "s", meta: { title: "Fox" }, config: { systemRole: "Be calm." } }],
        topics: range(CHATS).map((n) => ({ id: `t${n}`, sessionId: "s", title: `Chat ${n}` })),
        messages: range(CHATS).flatMap((n) =>
          texts(n).map((content, at) => ({
            id: `${n}-${at}`,
            role: at % 2 === 0 ? "user" : "assistant",
            content,
            sessionId: "s",
            topicId: `t${n}`,
            createdAt: 1_700_000_000_000 + at,
          }))
        ),
      },
      version: 7,
    }),
  }),
  lmstudio: () =>
    chatFiles((n) => `${n}.conversation.json`, (n) => ({
      name: `Chat ${n}`,
      createdAt: 1_700_000_000_000 + n,
      messages: texts(n).map((text, at) => ({
        currentlySelected: 0,
        versions: [{ role: at % 2 === 0 ? "user" : "assistant", content: [{ type: "text", text }] }],
      })),
    })),
  jan: () =>
    Object.fromEntries(
      range(CHATS).flatMap((n) => [
        [`threads/${n}/thread.json`, jsonFile({ id: `${n}`, title: `Chat ${n}` })],
        [
          `threads/${n}/messages.jsonl`,
          lines(
            texts(n).map((value, at) => ({
              id: `${n}-${at}`,
              role: at % 2 === 0 ? "user" : "assistant",
              content: [{ type: "text", text: { value } }],
            })),
          ),
        ],
      ]),
    ),
  llamacpp: () => ({
    "chats.json": jsonFile(
      range(CHATS).map((n) => ({
        conv: { id: `c${n}`, name: `Chat ${n}` },
        messages: texts(n).map((content, at) => ({
          id: `${n}-${at}`,
          parent: at === 0 ? null : `${n}-${at - 1}`,
          role: at % 2 === 0 ? "user" : "assistant",
          content,
        })),
      })),
    ),
  }),
  cherrystudio: () => ({
    "data.json": jsonFile({
      indexedDB: {
        topics: range(CHATS).map((n) => ({
          id: `t${n}`,
          name: `Chat ${n}`,
          messages: texts(n).map((content, at) => ({
            id: `${n}-${at}`,
            role: at % 2 === 0 ? "user" : "assistant",
            content,
          })),
        })),
      },
    }),
  }),
  backyard: () => ({
    "manifest.json": jsonFile({
      characters: ["characters/a/character.json"],
      scenarios: range(CHATS).map((n) => `scenarios/${n}.json`),
    }),
    "characters/a/character.json": jsonFile({ id: "a", displayName: "Fox" }),
    ...chatFiles((n) => `scenarios/${n}.json`, (n) => ({
      title: `Chat ${n}`,
      messages: texts(n).map((text, at) =>
        at % 2 === 0 ? { type: "human", text } : { type: "ai", outputs: [{ text }] }
      ),
    })),
  }),
  koboldcpp: () =>
    chatFiles((n) => `save-${n}.json`, (n) => ({ prompt: `Chat ${n}`, actions: texts(n).map((text) => `\n${text}`) })),
  textgen: () =>
    chatFiles((n) => `logs/chat/Fox/${n}.json`, (n) => {
      const said = texts(n);
      return { internal: said.flatMap((text, at) => at % 2 === 0 ? [[text, said[at + 1] ?? ""]] : []), metadata: {} };
    }),
  characterai: () =>
    chatFiles((n) => `dump-${n}.json`, (n) => ({
      histories: {
        histories: [{
          external_id: `h${n}`,
          msgs: texts(n).map((text, at) => ({ text, src: { is_human: at % 2 === 0, name: "Fox" } })),
        }],
      },
    })),
  chatbox: () => ({
    "chatbox.json": jsonFile({
      __exported_items: ["conversations"],
      "chat-sessions-list": range(CHATS).map((n) => ({ id: `b${n}`, name: `Chat ${n}` })),
      ...Object.fromEntries(
        range(CHATS).map((n) => [`session:b${n}`, {
          id: `b${n}`,
          name: `Chat ${n}`,
          messages: texts(n).map((content, at) => ({
            id: `${n}-${at}`,
            role: at % 2 === 0 ? "user" : "assistant",
            content,
          })),
        }]),
      ),
    }),
  }),
  parlor: () => ({
    "parlor-export.json": jsonFile({ format: 3, version: "0.1.0" }),
    ...chatFiles((n) => `conversations/p${n}.json`, (n) => ({
      title: `Chat ${n}`,
      messages: texts(n).map((content, at) => ({ id: `m${at}`, role: at % 2 === 0 ? "user" : "assistant", content })),
    })),
  }),
};

/** What an import brought, without what differs from one to the next. */
async function listImported(server: Pick<ChildServer, "json">): Promise<unknown> {
  const get = <T>(path: string) => server.json<T>("GET", path);
  const chats = await get<{ title: string; messages: { role: string; content: string }[] }[]>("/api/conversations");
  const named = async (path: string) => (await get<{ name: string }[]>(path)).map(({ name }) => name).sort();
  return {
    // Images get new names.
    chats: chats.map(({ title, messages }) =>
      JSON.stringify([title, messages.map(({ role, content }) => [role, content])]).replaceAll(
        /attachments\/[^"]+/g,
        "",
      )
    ).sort(),
    characters: await named("/api/characters"),
    personas: await named("/api/personas"),
    lorebooks: await named("/api/lorebooks"),
    presets: await named("/api/presets"),
  };
}

async function startImport(server: ChildServer, kind: ImportKind, zip: Uint8Array<ArrayBuffer>): Promise<string> {
  const headers = { "Content-Type": "application/octet-stream" };
  const answer = await fetch(`${server.url}/api/import?kind=${kind}`, { method: "POST", headers, body: zip });
  expect(answer.status).toBe(202);
  return (await answer.json()).id;
}

const ENDS = ["done", "failed", "cancelled"];
const readJob = (server: ChildServer, id: string) =>
  server.json<{ state: string; error?: { message: string } }>("GET", `/api/jobs/${id}`);

async function importWhole(server: ChildServer, kind: ImportKind, zip: Uint8Array<ArrayBuffer>): Promise<void> {
  const id = await startImport(server, kind, zip);
  await until(async () => ENDS.includes((await readJob(server, id)).state), "the import ends");
  expect(await readJob(server, id)).toMatchObject({ state: "done" });
}

const KINDS = Object.keys(IMPORTS) as ImportKind[];
/** The others share the queue and the writer with these. */
const USUAL: ImportKind[] = ["sillytavern", "openwebui"];

test.each(KINDS.filter((kind) => isLong() || USUAL.includes(kind)))(
  "an import of the kind %s that is killed leaves whole items, and importing again adds the rest once",
  { timeout: 10 * 60_000 },
  async (kind) => {
    const zip = zipSync(IMPORTS[kind](), { level: 1 }) as Uint8Array<ArrayBuffer>;
    await using whole = await tempFolder();
    await using folder = await tempFolder();
    const expected = await (async () => {
      await using server = await startChildServer({ dataDir: whole.path });
      await importWhole(server, kind, zip);
      return await listImported(server) as Record<string, string[]>;
    })();
    expect(expected.chats!.length).toBeGreaterThan(0);
    for (let kill = 0; kill < (isLong() ? 8 : 2); kill++) {
      await using server = await startChildServer({ dataDir: folder.path });
      const id = await startImport(server, kind, zip);
      // Once at any time, once after the first item, if that is seen.
      const begun = async () => {
        const { state } = await readJob(server, id);
        const { items } = await server.json<{ items: unknown[] }>("GET", "/api/conversations?view=summary");
        return items.length > 0 || ENDS.includes(state);
      };
      if (kill % 2 === 0) await until(begun, "the import has begun");
      else await new Promise((resolve) => setTimeout(resolve, Math.random() * 200));
      await server.kill("SIGKILL");
    }
    await using server = await startChildServer({ dataDir: folder.path });
    const left = await listImported(server) as Record<string, string[]>;
    for (const [what, items] of Object.entries(left)) {
      for (const item of items) expect(expected[what], what).toContain(item);
    }
    const jobs = await server.json<{ kind: string; state: string }[]>("GET", "/api/jobs");
    for (const { kind, state } of jobs) if (kind === "import") expect(ENDS).toContain(state);
    await importWhole(server, kind, zip);
    expect(await listImported(server)).toEqual(expected);
    expect(await Array.fromAsync(Deno.readDir(`${folder.path}/uploads`))).toEqual([]);
  },
);

test("a download of Ollama goes on after a kill, and its model answers", { timeout: 5 * 60_000 }, async () => {
  const gate = Promise.withResolvers<void>();
  await using ollama = await openFakeOllama({ models: {}, library: { qwen3: [1000, 10] }, pulling: gate.promise });
  await using folder = await tempFolder();
  const pulls = () => ollama.requests.filter(({ path }) => path === "/api/pull").length;
  let id: string;
  {
    await using server = await startChildServer({ dataDir: folder.path });
    const connection = { id: "double", kind: "ollama", base_url: ollama.url };
    await server.json("PUT", "/api/connections", connection);
    id = (await server.json<{ id: string }>("POST", "/api/connections/double/pull", { model: "qwen3" })).id;
    await until(() => Promise.resolve(pulls() === 1), "the download has begun");
    await server.kill("SIGKILL");
  }
  await using server = await startChildServer({ dataDir: folder.path });
  await until(() => Promise.resolve(pulls() === 2), "the download is asked for again");
  gate.resolve();
  await until(async () => ENDS.includes((await readJob(server, id)).state), "the download ends");
  expect(await readJob(server, id)).toMatchObject({ state: "done" });
  expect(await server.json("GET", "/api/jobs")).toHaveLength(1);
});

/** Opens a server on a copy of the data of another one that is at work, as after kill -9. */
async function openAsAfterKill(app: TestApp, folder: string, options: Parameters<typeof openTestApp>[0]) {
  await new Deno.Command("cp", { args: ["-a", `${app.dataDir}/.`, folder] }).output();
  await Deno.remove(`${folder}/lock`).catch(() => {});
  return await openTestApp({ ...options, dataDir: folder });
}

test("a chapter that was being written at a kill is written after the next reply, once", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await using folder = await tempFolder();
  const options = { titleIdleMs: 10 };
  await using app = await openTestApp(options);
  await useModel(app, llm);
  await app.patch("/api/settings", { auto_title: false });
  llm.switches.manual = "on";
  const messages = range(120).map((n) => say(`m${n}`, `${n} ${"word ".repeat(20)}`, n % 2 ? "assistant" : "user"));
  await app.put("/api/conversations/c1", { title: "Long", messages });
  const reply = async (server: TestApp) => {
    const body = { conversation_id: "c1", context: "server", messages: [{ role: "user", content: "And now?" }] };
    const asked = server.post("/api/chat", body);
    const call = await llm.nextCall();
    await call.emit("Yes");
    await call.finish();
    await gather(await asked);
  };
  const read = async (server: TestApp) => await (await server.get("/api/conversations/c1")).json();
  await reply(app);
  const held = await llm.nextCall(); // The request for a chapter, which nothing answers.
  expect(held.request.json!.stream).toBe(false);
  await using after = await openAsAfterKill(app, folder.path, options);
  const before: Json = await read(after);
  expect(before.messages).toHaveLength(122);
  expect(before.summary ?? null).toBeNull();
  await reply(after);
  const asked = await llm.nextCall();
  await asked.emit("A chapter.");
  await asked.finish();
  await until(async () => (await read(after)).summary?.text === "A chapter.", "the chapter is stored");
  expect((await read(after)).chapters).toHaveLength(1);
});

test("a chat whose notes were being read at a kill is read again, and each note is proposed once", async () => {
  await using llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["Fine."] });
  await using folder = await tempFolder();
  let nowMs = Date.now();
  const options = { titleIdleMs: 10, now: () => nowMs };
  await using app = await openTestApp(options);
  await useModel(app, llm);
  await app.patch("/api/settings", { auto_title: false, auto_summary: false, memory_proposals: true });
  await app.services.runMaintenance();
  nowMs += 1_000;
  llm.switches.manual = "on";
  await app.put("/api/conversations/c1", { messages: [say("m0", "I like tea."), say("m1", "Nice", "assistant")] });
  await app.services.runMaintenance();
  const rest = async (server: TestApp) => {
    nowMs += 31 * 60_000;
    await server.services.runMaintenance();
  };
  const inbox = async (server: TestApp): Promise<Json[]> => await (await server.get("/api/memories/proposals")).json();
  await rest(app);
  await llm.nextCall(); // The reading, which nothing answers.
  await using after = await openAsAfterKill(app, folder.path, options);
  expect(await inbox(after)).toEqual([]);
  await rest(after);
  const call = await llm.nextCall();
  await call.emit(JSON.stringify({ proposals: [{ text: "Likes tea", scope: "everything", message: 1 }] }));
  await call.finish();
  await until(async () => (await inbox(after)).length > 0, "the note is proposed");
  await rest(after);
  expect(await inbox(after)).toMatchObject([{ text: "Likes tea" }]);
});
