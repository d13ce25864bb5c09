import { expect, test } from "vitest";
import { type Frame, framesOf, gather, understand, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, connectModel, startChildServer } from "../helpers/app/child_server.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { filesBelow, tempFolder } from "../helpers/files/storage_folder.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

interface Conversation {
  messages: { id: string; content: string; status: string; reasoning?: string }[];
}

const QUESTION = {
  conversation_id: "c1",
  user_message_id: "u1",
  assistant_message_id: "a1",
  messages: [{ role: "user", content: "Hi" }],
};

test(
  "kill -9 at any point of a reply keeps all text that was seen, marks it interrupted, and its rest can be generated",
  { tags: ["D02"], timeout: 10 * 60_000 },
  async () => {
    await using llm = await openFakeLlm({ switches: { manual: "on" } });
    for (const count of [0, 1, 7, 20]) {
      const dataDir = await Deno.makeTempDir();
      try {
        const first = await startChildServer({ dataDir });
        await connectModel(first, llm.url);
        const response = await first.request("POST", "/api/chat", QUESTION);
        const call = await llm.nextCall();
        const seen = [];
        let sent = 0;
        for await (const frame of framesOf(response)) {
          seen.push(frame);
          if (sent === count) break;
          await call.emit(` word${sent++} 😀`);
        }
        await first.kill("SIGKILL");
        const { text } = understand(seen);
        expect(text.split("word").length - 1).toBe(count);

        await using second = await startChildServer({ dataDir });
        const { messages } = await second.json<Conversation>("GET", "/api/conversations/c1");
        expect(messages).toMatchObject([{ id: "u1", status: "complete" }, {
          id: "a1",
          content: text,
          status: "interrupted",
        }]);
        for (const [index, frame] of seen.entries()) {
          const rest = await gather(
            await second.request("GET", "/api/chat/replies/a1", undefined, { headers: { "Last-Event-ID": frame.id! } }),
          );
          expect(understand(seen.slice(0, index + 1)).text + rest.text).toBe(text);
          expect(rest.error).toMatchObject({ code: "interrupted" });
        }
        expect(await Array.fromAsync(Deno.readDir(`${dataDir}/replies`))).toEqual([]);
      } finally {
        await Deno.remove(dataDir, { recursive: true });
      }
    }
  },
);

test(
  "kill -9 while two replies run keeps exactly what was seen of each",
  { tags: ["D02"], timeout: 240_000 },
  async () => {
    await using llm = await openFakeLlm({ switches: { manual: "on" } });
    const dataDir = await Deno.makeTempDir();
    try {
      const first = await startChildServer({ dataDir });
      await connectModel(first, llm.url);
      const names = ["1", "2"];
      const runs = [];
      for (const name of names) {
        const response = await first.request("POST", "/api/chat", {
          conversation_id: `c${name}`,
          user_message_id: `u${name}`,
          assistant_message_id: `a${name}`,
          messages: [{ role: "user", content: "Hi" }],
        });
        runs.push({ call: await llm.nextCall(), frames: framesOf(response), seen: [] as Frame[] });
      }
      for (let word = 0; word < 6; word++) {
        await Promise.all(runs.map(({ call }, index) => call.emit(` ${names[index]}.${word}`)));
        for (const { frames, seen } of runs) seen.push((await frames.next()).value!);
      }
      await first.kill("SIGKILL");

      await using second = await startChildServer({ dataDir });
      for (const [index, { seen }] of runs.entries()) {
        const { messages } = await second.json<Conversation>("GET", `/api/conversations/c${names[index]}`);
        expect(messages[1]).toMatchObject({ id: `a${names[index]}`, status: "interrupted" });
        const { content } = messages[1]!;
        // The last word may be in the journal without having been sent.
        const all = Array.from({ length: 6 }, (_, word) => ` ${names[index]}.${word}`).join("");
        expect(all.startsWith(content)).toBe(true);
        expect(content.startsWith(understand(seen).text)).toBe(true);
      }
      expect(await Array.fromAsync(Deno.readDir(`${dataDir}/replies`))).toEqual([]);
    } finally {
      await Deno.remove(dataDir, { recursive: true });
    }
  },
);

test("SIGTERM under load ends streams, saves every reply, and ends the process normally", {
  tags: ["L06"],
  timeout: 180_000,
}, async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const dataDir = await Deno.makeTempDir();
  try {
    const first = await startChildServer({ dataDir });
    await connectModel(first, llm.url);
    const clients = [];
    for (let n = 0; n < 8; n++) {
      const ids = { conversation_id: `c${n}`, user_message_id: `u${n}`, assistant_message_id: `a${n}` };
      const response = await first.request("POST", "/api/chat", { ...QUESTION, ...ids });
      await (await llm.nextCall()).emit(`part ${n}`);
      clients.push(gather(response));
    }
    await until(async () => {
      const all = await first.json<Conversation[]>("GET", "/api/conversations");
      return all.every(({ messages }) => messages[1]!.content !== "");
    }, "every reply had begun");
    const status = await first.kill("SIGTERM");
    expect(status).toMatchObject({ code: 0 });
    expect(JSON.parse(first.logs.at(-1)!)).toMatchObject({ level: "info", message: "Stopped" });
    for (const [n, client] of clients.entries()) {
      expect(await client).toMatchObject({ text: `part ${n}`, error: { code: "interrupted" } });
    }

    await using second = await startChildServer({ dataDir });
    const all = await second.json<Conversation[]>("GET", "/api/conversations");
    expect(all.length).toBe(8);
    for (const { messages } of all) {
      expect(messages[1]).toMatchObject({ content: `part ${messages[1]!.id.slice(1)}`, status: "interrupted" });
    }
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("a second server on the same folder is refused with one message", async () => {
  const dataDir = await Deno.makeTempDir();
  try {
    await using _first = await startChildServer({ dataDir });
    await expect(startChildServer({ dataDir })).rejects.toThrow(
      /ended with code 1.*\n\{.*"error":"[^\n]*(another|already)/s,
    );
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("after kill -9, a request that is repeated with its Idempotency-Key makes its thing once", async () => {
  await using folder = await tempFolder();
  const dataDir = folder.path;
  const boundary = "keys";
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="keys.md"\r\n\r\n# Keys\r\n`;
  const upload = async (server: ChildServer, body: BodyInit) => {
    const headers = { "content-type": `multipart/form-data; boundary=${boundary}`, "idempotency-key": "k1" };
    const response = await fetch(`${server.url}/api/documents`, { method: "POST", headers, body });
    return { status: response.status, id: (await response.json()).id };
  };
  const fork = async (server: ChildServer) => {
    const headers = { "idempotency-key": "k2" };
    const response = await server.request("POST", "/api/conversations/c1/fork", { message_id: "u1" }, { headers });
    return { status: response.status, id: (await response.json()).id };
  };
  const first = await startChildServer({ dataDir });
  const messages = [{ id: "u1", role: "user", content: "Keys?" }];
  await first.json("PUT", "/api/conversations/c1", { messages });
  const database = openStoredDatabase(dataDir);
  const countIds = () =>
    database.prepare("SELECT count(*) AS n FROM setting WHERE key LIKE 'idempotency:%'").get()!.n as number;
  // The id of the document is stored, the document isn't.
  const body = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>();
  const writer = body.writable.getWriter();
  const sent = Promise.allSettled([upload(first, body.readable), writer.write(new TextEncoder().encode(file))]);
  await until(() => countIds() === 1, "the id is stored");
  // The copy is stored, but not that it's done.
  database.exec(`CREATE TRIGGER stop BEFORE INSERT ON setting
    WHEN NEW.key LIKE 'idempotency:%' AND EXISTS (SELECT 1 FROM setting WHERE key = NEW.key)
    BEGIN SELECT RAISE(ABORT, 'stop'); END`);
  expect((await fork(first)).status).toBe(500);
  expect(countIds()).toBe(2);
  await first.kill("SIGKILL");
  database.exec("DROP TRIGGER stop");
  database.close();
  expect((await sent)[0].status).toBe("rejected");

  await using second = await startChildServer({ dataDir });
  const uploaded = [await upload(second, `${file}--${boundary}--`), await upload(second, `${file}--${boundary}--`)];
  const copied = [await fork(second), await fork(second)];
  for (const results of [uploaded, copied]) {
    expect(results.map(({ status }) => status)).toEqual([201, 201]);
    expect(results[0]!.id).toBe(results[1]!.id);
  }
  expect(await second.json("GET", "/api/documents")).toMatchObject([{ id: uploaded[0]!.id }]);
  expect(await filesBelow(`${dataDir}/documents`)).toHaveLength(1);
  const { items } = await second.json<{ items: { id: string }[] }>("GET", "/api/conversations?view=summary");
  expect(items.map(({ id }) => id).sort()).toEqual(["c1", copied[0]!.id].sort());
});
