/** A chat with references of every kind. */
import { picture } from "./pictures.ts";
import type { TestApp } from "../app/test_app.ts";

/** Makes conversation `c1` with two texts of its answer, an image, a hidden message, and one thing of each kind. */
export async function makePrivateChat(app: TestApp): Promise<void> {
  const ok = async (pending: Promise<Response>) => {
    const answer = await pending;
    if (!answer.ok) throw new Error(`${answer.url}: ${await answer.text()}`);
    await answer.body?.cancel();
  };
  const png = { headers: { "content-type": "image/png" } };
  await ok(app.put("/api/characters/h1", { card: { name: "Fox", first_mes: "Hi." } }));
  await ok(app.put("/api/personas/p1", { name: "Ann", description: "A sailor." }));
  await ok(app.put("/api/lorebooks/b1", { name: "Harbour", scope: "chat", book: { entries: [{ keys: ["pier"] }] } }));
  await ok(app.put("/api/presets/s1", { name: "Calm", models: ["m*"], sampler: { temperature: 0.5 } }));
  await ok(app.put("/api/attachments/boat.png", picture(5), png));
  const boat = { type: "image_url", image_url: { url: "/api/attachments/boat.png" } };
  const conversation = {
    id: "c1",
    hash: "h",
    createdAtMs: Date.parse("2025-01-02T03:04:00Z"),
    head: {
      title: "Abend",
      participants: [{ character_id: "h1" }],
      persona_id: "p1",
      lorebook_ids: ["b1"],
      preset_id: "s1",
      note: { text: "It rains.", depth: 2, role: "system" },
      folder: "Sea",
    },
    messages: [
      ...[{
        id: "u1",
        role: "user",
        content: [{ type: "text", text: "Grüße." }, boat],
        created_at: "2025-01-02T03:04:00.000Z",
      }],
      {
        id: "a1",
        role: "assistant",
        content: "Second.",
        created_at: "2025-01-02T03:05:00.000Z",
        character_id: "h1",
        variants: [{ content: "First." }, { content: "Second." }],
        active_variant: 1,
      },
      { id: "x1", role: "assistant", content: "Unseen.", hidden: true, created_at: "2025-01-02T03:06:00.000Z" },
    ],
  };
  await (await app.services.conversations()).conversationImporter.importConversation(conversation);
}
