import { expect, test } from "vitest";
import { ApiError } from "../../../../static/src/api/client.ts";
import type { Api } from "../../../../static/src/api/api.ts";
import { Draft } from "../../../../static/src/state/chat/draft.ts";

/** A server that has the draft of one conversation, and its two calls. */
function openServer(text = "", version = 0) {
  const server = { text, version, saves: [] as { text: string; known: number | undefined }[] };
  const api: Pick<Api, "saveDraft" | "getHead"> = {
    saveDraft(_id, draft, known) {
      server.saves.push({ text: draft, known });
      if (known !== undefined && known !== server.version) {
        return Promise.reject(new ApiError(412, { code: "revision_mismatch", message: "Another version" }));
      }
      server.text = draft;
      return Promise.resolve(++server.version);
    },
    getHead: (id) =>
      Promise.resolve({
        id,
        title: "",
        created_at: "",
        updated_at: "",
        revision: 1,
        message_count: 0,
        draft: server.text,
        draft_version: server.version,
      }),
  };
  return { server, api: api as Api };
}

function openStorage(): Storage {
  const values = new Map<string, string>();
  return {
    get length() {
      return values.size;
    },
    clear: () => values.clear(),
    getItem: (key) => values.get(key) ?? null,
    key: (index) => [...values.keys()][index] ?? null,
    removeItem: (key) => void values.delete(key),
    setItem: (key, value) => void values.set(key, value),
  };
}

test("saves a draft with its base version, and learns the new one", async () => {
  const { server, api } = openServer("", 4);
  const draft = new Draft(api, "c", false, undefined);
  draft.receive("", 4);
  draft.type("one");
  await draft.save();
  draft.type("two");
  await draft.save();
  expect(server.saves).toEqual([{ text: "one", known: 4 }, { text: "two", known: 5 }]);
  expect(draft.isDirty).toBe(false);
});

test("shows another device's draft only if nothing was typed", async () => {
  const { server, api } = openServer("theirs", 1);
  const idle = new Draft(api, "c", false, undefined);
  idle.receive("theirs", 1);
  expect(idle.text.value).toBe("theirs");

  const busy = new Draft(api, "c", false, undefined);
  busy.receive("", 0);
  busy.type("mine");
  await busy.save();
  expect(busy.text.value).toBe("mine");
  expect(busy.clash.value).toBe("theirs");
  expect(server.text).toBe("theirs");
});

test("saves nothing during a conflict; the choice decides", async () => {
  const { server, api } = openServer("theirs", 1);
  const draft = new Draft(api, "c", false, undefined);
  draft.receive("", 0);
  draft.type("mine");
  await draft.save();
  draft.type("mine, longer");
  await draft.save();
  expect(server.text).toBe("theirs");
  draft.settle("mine");
  await draft.settled();
  expect(server.text).toBe("mine, longer");

  server.text = "theirs again";
  server.version++;
  draft.type("mine again");
  await draft.save();
  draft.settle("theirs");
  await draft.settled();
  expect([draft.text.value, server.text, draft.clash.value]).toEqual(["theirs again", "theirs again", undefined]);
});

test("ignores events of its own saves, and handles newer versions", async () => {
  const { api } = openServer("", 1);
  const draft = new Draft(api, "c", false, undefined);
  draft.receive("", 1);
  draft.type("x");
  await draft.save();
  expect([draft.isNews(1), draft.isNews(2), draft.isNews(3)]).toEqual([false, false, true]);
});

test("stores the text of a new chat on the device until its first message is accepted", async () => {
  const { server, api } = openServer();
  const storage = openStorage();
  const draft = new Draft(api, "c", true, storage);
  draft.type("first words");
  await draft.save();
  expect(server.saves).toEqual([]);
  expect(new Draft(api, "c2", true, storage).text.value).toBe("first words");

  expect(draft.take()).toBe("first words");
  expect(new Draft(api, "c2", true, storage).text.value).toBe("first words");
  draft.becomeStored();
  expect(new Draft(api, "c2", true, storage).text.value).toBe("");
});

test("restores text that couldn't be sent, but not over new text", () => {
  const { api } = openServer();
  const draft = new Draft(api, "c", true, openStorage());
  draft.type("lost");
  draft.putBack(draft.take());
  expect(draft.text.value).toBe("lost");
  const sent = draft.take();
  draft.type("new");
  draft.putBack(sent);
  expect(draft.text.value).toBe("new");
});
