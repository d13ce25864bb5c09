import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { makePrivateChat } from "../helpers/exported_chat.ts";
import { importReport } from "../helpers/imported.ts";
import { openTestApp, type TestApp } from "../helpers/test_app.ts";

/** Fields in which an imported conversation differs from what it was. */
// deno-lint-ignore no-explicit-any -- a conversation as it came
function asItWas({ revision: _, updated_at: __, imported: ___, draft_version: ____, ...conversation }: any) {
  return conversation;
}

async function seen(app: TestApp) {
  // deno-lint-ignore no-explicit-any -- answers of many shapes
  const get = async (path: string): Promise<any> => await (await app.get(path)).json();
  const untimed = (items: Record<string, unknown>[]) =>
    items.map(({ updated_at: _, created_at: __, ...item }) => item).sort((a, b) => `${a.id}` < `${b.id}` ? -1 : 1);
  const chat = await get("/api/conversations/c1");
  return {
    chat: asItWas(chat),
    variants: (await get("/api/conversations/c1/messages/a1/variants")).map(({ content }: { content: string }) =>
      content
    ),
    picture: new Uint8Array(await (await app.get("/api/attachments/boat.png")).arrayBuffer()),
    characters: untimed(await get("/api/characters?view=full")),
    personas: untimed(await get("/api/personas")),
    book: untimed([await get("/api/lorebooks/b1")]),
    preset: untimed([await get("/api/presets/s1")]),
  };
}

test("everything a person owns goes into one zip, and another Parlor has it whole from there", async () => {
  await using first = await openTestApp();
  await makePrivateChat(first);
  const answer = await first.get("/api/export");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="parlor-[\d-]+\.zip"/);
  const zip = await answer.bytes();
  expect(Object.keys(unzipSync(zip))).toContain("conversations/c1.json"); // as other programs read it

  await using second = await openTestApp();
  const report = await importReport(second, "kind=parlor", zip);
  expect(report.lines).toEqual([]);
  expect(report.counts.conversation).toMatchObject({ added: 1, refused: 0 });
  expect(await seen(second)).toEqual(await seen(first));

  const again = await importReport(second, "kind=parlor", zip);
  for (const { added, updated, refused } of Object.values(again.counts)) {
    expect([added, updated, refused]).toEqual([0, 0, 0]);
  }
  const home = await importReport(first, "kind=parlor", zip);
  expect(Object.values(home.counts).map(({ added }) => added)).toEqual([0, 0, 0, 0, 0, 0]);
});

test("one chat as Markdown, without what is hidden", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const answer = await app.get("/api/conversations/c1/export?format=markdown");
  expect(answer.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  expect(answer.headers.get("content-disposition")).toContain("filename*=UTF-8''Abend.md");
  const text = await answer.text();
  expect(text).toBe(
    "# Abend\n\n**Ann** · 2025-01-02 03:04\n\nGrüße.\n\n*(a picture)*\n\n**Fox** · 2025-01-02 03:05\n\nSecond.\n",
  );
});

test("one chat as JSON has every text of it", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const chat = await (await app.get("/api/conversations/c1/export?format=json")).json();
  expect(chat.messages[1].variants.map(({ content }: { content: string }) => content)).toEqual(["First.", "Second."]);
});

test("one chat as Tavern's JSONL comes back with its swipes, its note and its times", async () => {
  await using app = await openTestApp();
  await makePrivateChat(app);
  const file = await (await app.get("/api/conversations/c1/export?format=tavern")).bytes();
  const first = JSON.parse(new TextDecoder().decode(file).split("\n")[0]!);
  expect(first).toMatchObject({ user_name: "Ann", character_name: "Fox", chat_metadata: { note_prompt: "It rains." } });
  await importReport(app, "kind=tavern&name=Back.jsonl", file);
  const { items } = await (await app.get("/api/conversations?view=summary")).json();
  const { id } = items.find(({ title }: { title: string }) => title === "Back");
  const back = await (await app.get(`/api/conversations/${id}`)).json();
  expect(back).toMatchObject({ note: { text: "It rains.", depth: 2, role: "system" } });
  expect(back.messages.map(({ role, hidden }: { role: string; hidden?: boolean }) => [role, hidden])).toEqual([
    ["user", undefined],
    ["assistant", undefined],
    ["assistant", true],
  ]);
  expect(back.messages[1]).toMatchObject({
    variant_count: 2,
    active_variant: 1,
    created_at: "2025-01-02T03:05:00.000Z",
  });
});

test.each([["a chat that is not there", "/api/conversations/none/export?format=json", 404], [
  "a form that is none",
  "/api/conversations/c1/export?format=pdf",
  400,
]])("%s: %s is refused", async (_, path, status) => {
  await using app = await openTestApp();
  const answer = await app.get(path);
  expect(answer.status).toBe(status);
  await answer.body?.cancel();
});
