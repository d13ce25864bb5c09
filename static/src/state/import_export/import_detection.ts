/** Detects the kind of an import from the start of the file, and for a zip from its file names. Only a suggestion. */

/** A character card: not an import of a program, but users drop those here, too. */
export const CARD = "card";

// PKWARE APPNOTE, sections 4.3.12 to 4.3.16
const END_MARK = 0x06054b50;
const END_BYTES = 22;
/** The zip64 end record with its locator. */
const END64_BYTES = 76;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const MAX_COMMENT_BYTES = 65_535;
/** How much of the directory is read: thousands of names are enough. In bytes. */
const LOOKED_AT_BYTES = 512 * 1024;

/** Signs of a zip's content, the surest first. */
const BY_NAMES: [kind: string, sign: RegExp][] = [
  ["parlor", /^parlor-export\.json$/],
  [CARD, /^card\.json$/],
  ["claude", /(^|\/)users\.json$/],
  ["chatgpt", /(^|\/)conversations[-\d]*\.json$/],
  ["sillytavern", /(^|\/)(settings\.json$|(characters|chats|worlds|group chats|OpenAI Settings|User Avatars)\/)/],
  ["tavern", /\.jsonl$/i],
];

/** Signs at the start of a JSON text, the surest first. */
const BY_TEXT: [kind: string, sign: RegExp][] = [
  [CARD, /"spec"\s*:\s*"chara_card_v\d"|"first_mes"\s*:/],
  ["risuai", /"type"\s*:\s*"risu/],
  ["agnai", /"kind"\s*:\s*"(?:character|chat|memory)"|"treeLeafId"|"sampleChat"/],
  ["claude", /"chat_messages"\s*:/],
  ["librechat", /"messagesTree"\s*:|"isCreatedByUser"\s*:|"parentMessageId"\s*:/],
  ["lobechat", /"exportType"\s*:/],
  ["chatbox", /"__exported_items"\s*:|"session:[\w-]+"\s*:|"chat-sessions(-list)?"\s*:/],
  ["chatgpt", /"mapping"\s*:\s*\{/],
  ["openwebui", /"history"\s*:\s*\{|"chat"\s*:\s*\{|"currentId"\s*:/],
];

/** Returns the kind, or undefined if unknown. Reads little of the file, however large. */
export async function detectImportKind(file: File): Promise<string | undefined> {
  const begin = new Uint8Array(await file.slice(0, 64 * 1024).arrayBuffer());
  if (begin[0] === 0x89 && begin[1] === 0x50) return CARD;
  if (begin[0] === 0xff && begin[1] === 0xd8 || new TextDecoder().decode(begin.subarray(8, 12)) === "WEBP") return CARD;
  if (begin[0] === 0x50 && begin[1] === 0x4b) {
    const names = await listZipNames(file);
    return BY_NAMES.find(([, sign]) => names.some((name) => sign.test(name)))?.[0];
  }
  if (/\.jsonl$/i.test(file.name)) return "tavern";
  if (/\.bin$/i.test(file.name)) return "risuai"; // its backups
  const text = new TextDecoder().decode(begin).trimStart();
  if (!/^[[{]/.test(text)) return undefined;
  // Several objects, one per line.
  if (/^\{[^\n]*\}\r?\n\{/.test(text)) return "tavern";
  return BY_TEXT.find(([, sign]) => sign.test(text))?.[0];
}

/** Returns the first names of a zip's directory; none without a directory. */
async function listZipNames(file: File): Promise<string[]> {
  const tail = await readView(file, file.size - END_BYTES - MAX_COMMENT_BYTES, file.size);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  if (end < 0) return [];
  const length = tail.getUint32(end + 12, true);
  const said = tail.getUint32(end + 16, true);
  // Beyond 4 GiB its position is stored elsewhere, but it precedes the zip64 end record.
  const at = said === 0xffffffff ? file.size - (tail.byteLength - end) - END64_BYTES - length : said;
  const view = await readView(file, at, at + Math.min(length, LOOKED_AT_BYTES));
  const names: string[] = [];
  for (let here = 0; here + ENTRY_BYTES <= view.byteLength && view.getUint32(here, true) === ENTRY_MARK;) {
    const [name, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(here + offset, true));
    if (here + ENTRY_BYTES + name! > view.byteLength) break;
    names.push(new TextDecoder().decode(new Uint8Array(view.buffer, here + ENTRY_BYTES, name)));
    here += ENTRY_BYTES + name! + extra! + comment!;
  }
  return names;
}

async function readView(file: File, from: number, to: number): Promise<DataView<ArrayBuffer>> {
  return new DataView(await file.slice(Math.max(0, from), to).arrayBuffer());
}
