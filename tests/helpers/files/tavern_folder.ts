/** A small folder of a SillyTavern user, with something of every kind, as SillyTavern lays it out. */
import { sillyTavernCard, sillyTavernPng } from "./cards.ts";
import { picture } from "./pictures.ts";

const encoder = new TextEncoder();

/** Returns its files by path. */
export function tavernFolder(): Record<string, Uint8Array<ArrayBuffer>> {
  const json = (value: unknown) => encoder.encode(JSON.stringify(value));
  const said = (name: string, mes: string, more: object = {}) => ({
    name,
    is_user: name === "Ann",
    is_system: false,
    mes,
    send_date: "June 19, 2023 2:20pm",
    extra: {},
    ...more,
  });
  return {
    "settings.json": json({
      power_user: { personas: { "ann.png": "Ann" }, persona_descriptions: { "ann.png": { description: "A sailor." } } },
      world_info_settings: { world_info: { globalSelect: ["Harbour"] } },
    }),
    "User Avatars/ann.png": picture(1),
    "characters/Fox.png": sillyTavernPng(sillyTavernCard("Fox")),
    "characters/Owl.png": sillyTavernPng(sillyTavernCard("Owl")),
    "characters/Fox/joy.png": picture(4),
    "worlds/Harbour.json": json({ entries: { 0: { uid: 0, key: ["pier"], content: "It is lit.", order: 100 } } }),
    "OpenAI Settings/Calm.json": json({ temperature: 0.3, openai_max_tokens: 200 }),
    "backgrounds/sea.png": picture(2),
    "user/images/Fox/boat.png": picture(3),
    "chats/Fox/Evening.jsonl": lines([
      {
        user_name: "Ann",
        character_name: "Fox",
        create_date: "2023-6-19 @14h 20m 1s 5ms",
        chat_metadata: { note_prompt: "It rains.", note_depth: 2, note_role: 0, world_info: "Harbour" },
      },
      said("Fox", "Ahoy!", {
        swipes: ["Evening.", "Ahoy!", "Psst!"],
        swipe_id: 1,
        swipe_info: [{ extra: { model: "m-1", reasoning: "Dusk." } }, {}, {}],
      }),
      said("Ann", "Grüße, 灯台。", { force_avatar: "User Avatars/ann.png" }),
      said("Fox", "Look.", { extra: { image: "/user/images/Fox/boat.png" } }),
      said("Fox", "Nobody reads this.", { is_system: true }),
    ]),
    "groups/1.json": json({ id: "1", name: "Watch", members: ["Fox.png", "Owl.png"], chat_id: "g1", chats: ["g1"] }),
    "group chats/g1.jsonl": lines([
      { chat_metadata: {} },
      said("Owl", "Who?", { original_avatar: "Owl.png" }),
      said("Fox", "Me."),
    ]),
  };
}

/** Formats objects as JSONL. */
export function lines(objects: unknown[]): Uint8Array<ArrayBuffer> {
  return encoder.encode(objects.map((object) => JSON.stringify(object)).join("\n"));
}
