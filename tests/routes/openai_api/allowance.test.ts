/** What a limited token may use. */
import { expect, test } from "vitest";
import { openOpenAiApp, saveMira } from "../../helpers/app/openai_app.ts";
import { openGatedApp, Visitor } from "../../helpers/app/visitor.ts";

const messages = [{ role: "user", content: "What do you know about me?" }];

async function openFilled() {
  const at = await openOpenAiApp();
  await saveMira(at);
  const owner = (method: string, path: string, body: Record<string, unknown>) =>
    at.send(method, path, body, at.ownerToken);
  await owner("PUT", "/api/memories/key", { text: "The spare key is under the BLUEPOT" });
  await owner("PUT", "/api/personas/me", { name: "Robin", description: "Robin hides from the GREYMAN" });
  await owner("PATCH", "/api/settings", { default_persona_id: "me" });
  const id = "c-sage";
  await owner("PUT", `/api/characters/${id}`, {
    card: { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Sage", first_mes: "Hm" } },
  });
  const mint = async (allow?: Parameters<typeof at.app.services.auth.mintToken>[2]) =>
    (await at.app.services.auth.mintToken("program", "openai", allow)).token;
  const ask = async (token: string, model: string, more: Record<string, unknown> = {}) =>
    await at.send("POST", "/api/v1/chat/completions", { model, messages, ...more }, token);
  return { at, sageId: id, mint, ask };
}

const lastPrompt = (at: Awaited<ReturnType<typeof openOpenAiApp>>) => JSON.stringify(at.llm.chats.at(-1)!.body);

test(
  "prompts of characters contain notes, persona and name only for tokens that may use them",
  { tags: ["J12"] },
  async () => {
    const { at, mint, ask } = await openFilled();
    await using _ = at;
    for (
      const [allow, notes, persona] of [[undefined, false, false], [{ notes: true }, true, false], [
        { persona: true },
        false,
        true,
      ]] as const
    ) {
      const token = await mint(allow);
      expect((await ask(token, "character:mira")).status).toBe(200);
      const prompt = lastPrompt(at);
      expect([prompt.includes("BLUEPOT"), prompt.includes("GREYMAN"), prompt.includes("Robin")]).toEqual([
        notes,
        persona,
        persona,
      ]);
      expect(
        (await at.send("POST", "/api/v1/responses", { model: "character:mira", input: "Who am I?" }, token)).status,
      ).toBe(200);
      expect([lastPrompt(at).includes("BLUEPOT"), lastPrompt(at).includes("GREYMAN")]).toEqual([notes, persona]);
    }
    expect((await ask(at.ownerToken, "character:mira")).status).toBe(200);
    expect(lastPrompt(at)).toMatch(/BLUEPOT.*GREYMAN|GREYMAN.*BLUEPOT/);
  },
);

test("a token uses and sees only its characters and connections", { tags: ["J12"] }, async () => {
  const { at, sageId, mint, ask } = await openFilled();
  await using _ = at;
  const token = await mint({ characters: [sageId] });
  const statusOf = async (token: string, model: string) => (await ask(token, model)).status;
  expect(await statusOf(token, `character:${sageId}`)).toBe(200);
  expect(await statusOf(token, "character:sage")).toBe(200);
  for (const model of ["character:mira", "character:nobody"]) {
    const response = await ask(token, model);
    expect([response.status, (await response.json()).error.code]).toEqual([403, "forbidden"]);
  }
  const list = await (await at.send("GET", "/api/v1/models", undefined, token)).json();
  const ids: string[] = list.data.map(({ id }: { id: string }) => id);
  expect(ids.filter((id) => id.startsWith("character:"))).toEqual([`character:${sageId}`]);
  const other = await mint({ connections: ["other"] });
  const served = ids.find((id) => id.startsWith("connection:"))!;
  for (const model of ["default", "character:mira", served]) expect(await statusOf(other, model), model).toBe(403);
  expect((await at.send("GET", `/api/v1/models/${encodeURIComponent(served)}`, undefined, other)).status).toBe(403);
  expect((await at.send("POST", "/api/v1/responses", { model: served, input: "Hi" }, other)).status).toBe(403);
  expect((await at.send("POST", "/api/v1/embeddings", { model: served, input: "Hi" }, other)).status).toBe(403);
  const seen = await (await at.send("GET", "/api/v1/models", undefined, other)).json();
  expect(seen.data.filter(({ id }: { id: string }) => !id.startsWith("character:"))).toEqual([]);
});

test("a token writes into existing conversations only if it may", { tags: ["J12"] }, async () => {
  const { at, mint, ask } = await openFilled();
  await using _ = at;
  await at.send("PUT", "/api/conversations/mine", {
    title: "Mine",
    messages: [{ id: "m1", role: "user", content: "SECRET" }],
  }, at.ownerToken);
  const stored = { store: true, metadata: { conversation_id: "mine" } };
  const read = async () =>
    (await (await at.send("GET", "/api/conversations/mine", undefined, at.ownerToken)).json()).messages.length;
  const refused = await ask(await mint(), "default", stored);
  expect([refused.status, (await refused.json()).error.code, await read()]).toEqual([403, "forbidden", 1]);
  expect((await ask(await mint(), "default", { store: true, metadata: { conversation_id: "new1" } })).status).toBe(200);
  expect((await ask(await mint({ write: true }), "default", stored)).status).toBe(200);
  expect(await read()).toBeGreaterThan(1);
});

test("a token is created and listed with what it may use; other scopes take no limits", { tags: ["J12"] }, async () => {
  await using app = await openGatedApp();
  const owner = new Visitor(app, { host: "desk.example", address: "203.0.113.5" });
  await owner.enrol();
  const all = { characters: "all", connections: "all", notes: false, persona: false, write: false };
  const mint = (body: Record<string, unknown>) => owner.post("/api/auth/token", { label: "x", ...body });
  expect((await mint({ scope: "openai" })).json.allow).toEqual(all);
  const limited = await mint({ scope: "openai", allow: { characters: ["c1"], notes: true } });
  expect(limited.json.allow).toEqual({ ...all, characters: ["c1"], notes: true });
  await app.restart();
  const listed = (await owner.get("/api/auth/tokens")).json;
  expect(listed.map(({ allow }: { allow: unknown }) => allow)).toEqual([limited.json.allow, all]);
  for (const allow of [{ characters: "none" }, { notes: "yes" }, { power: true }, { characters: ["../x"] }]) {
    expect((await mint({ scope: "openai", allow })).status).toBe(400);
  }
  expect((await mint({ allow: { notes: true } })).status).toBe(400);
});
