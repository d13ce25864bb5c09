/** The folder of a SillyTavern user: cards and chats, the same in each run. */
import { numbers, sampleText } from "./sample_chat.ts";
import { cardFile } from "./sample_cards.ts";

/** Options. */
export interface TavernSize {
  characters: number;
  chats: number;
  /** Messages of each chat. */
  messages: number;
}

const MINUTE_MS = 60_000;
const BEGIN_MS = Date.UTC(2024, 0, 1);
const encoder = new TextEncoder();

/** Returns the files by path. Every second reply has a second version. */
export function tavernFiles({ characters, chats, messages }: TavernSize): Record<string, Uint8Array> {
  const files: Record<string, Uint8Array> = { "settings.json": encoder.encode("{}") };
  for (let n = 0; n < characters; n++) files[`characters/${nameOf(n)}.png`] = cardFile(nameOf(n), "A sailor.");
  for (let n = 0; n < chats; n++) {
    const name = nameOf(n % characters);
    files[`chats/${name}/${name} - chat ${n}.jsonl`] = encoder.encode(chatText(name, n, messages));
  }
  return files;
}

function chatText(name: string, n: number, messages: number): string {
  const next = numbers(n + 1);
  const at = (index: number) => new Date(BEGIN_MS + n * 1000 * MINUTE_MS + index * MINUTE_MS).toISOString();
  const lines: unknown[] = [
    { user_name: "Ann", character_name: name, create_date: at(0), chat_metadata: { note_prompt: "", note_depth: 4 } },
  ];
  for (let index = 0; index < messages; index++) {
    const mes = sampleText(next);
    const send_date = at(index);
    const extra = { api: "openai", model: "sample-1" };
    if (index % 2 === 0) lines.push({ name: "Ann", is_user: true, is_system: false, send_date, mes, extra: {} });
    else {
      const swipes = index % 4 === 1 ? [sampleText(next), mes] : [mes];
      const swipe_info = swipes.map(() => ({ send_date, extra }));
      const swipe = { swipes, swipe_info, swipe_id: swipes.length - 1 };
      lines.push({ name, is_user: false, is_system: false, send_date, mes, extra, ...swipe });
    }
  }
  return lines.map((line) => JSON.stringify(line)).join("\n");
}

function nameOf(n: number): string {
  return `Sailor ${n}`;
}
