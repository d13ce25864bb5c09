/** What kind of import a file is, told by a look at its begin, and for a zip at the names in it. A guess: the person may know better. */

/** A character's card: no import of a program, but people drop those here too. */
export const CARD = "card";

// PKWARE APPNOTE, sections 4.3.12 to 4.3.16
const END_MARK = 0x06054b50;
const END_BYTES = 22;
/** Of the end record of large zips with its locator. */
const END64_BYTES = 76;
const ENTRY_MARK = 0x02014b50;
const ENTRY_BYTES = 46;
const MAX_COMMENT_BYTES = 65_535;
/** Of a directory the begin is looked at: thousands of names tell enough. */
const LOOKED_AT_BYTES = 512 * 1024;

/** Signs of what a zip holds, the surest first. */
const BY_NAMES: [kind: string, sign: RegExp][] = [
  ["parlor", /^parlor-export\.json$/],
  [CARD, /^card\.json$/],
  ["chatgpt", /(^|\/)conversations[-\d]*\.json$/],
  ["sillytavern", /(^|\/)(settings\.json$|(characters|chats|worlds|group chats|OpenAI Settings|User Avatars)\/)/],
  ["tavern", /\.jsonl$/i],
];

/** Signs in the begin of a text of JSON, the surest first. */
const BY_TEXT: [kind: string, sign: RegExp][] = [
  [CARD, /"spec"\s*:\s*"chara_card_v\d"|"first_mes"\s*:/],
  ["risuai", /"type"\s*:\s*"risu/],
  ["agnai", /"kind"\s*:\s*"(?:character|chat|memory)"|"treeLeafId"|"sampleChat"/],
  ["chatgpt", /"mapping"\s*:\s*\{/],
  ["openwebui", /"history"\s*:\s*\{|"chat"\s*:\s*\{|"currentId"\s*:/],
];

/** Gives the kind, or nothing where nothing tells. Reads little of the file, however large it is. */
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
  // Several objects, one a line.
  if (/^\{[^\n]*\}\r?\n\{/.test(text)) return "tavern";
  return BY_TEXT.find(([, sign]) => sign.test(text))?.[0];
}

/** Gives names that the directory of a zip begins with; none where there is no directory. */
async function listZipNames(file: File): Promise<string[]> {
  const tail = await readView(file, file.size - END_BYTES - MAX_COMMENT_BYTES, file.size);
  let end = tail.byteLength - END_BYTES;
  while (end >= 0 && tail.getUint32(end, true) !== END_MARK) end--;
  if (end < 0) return [];
  const length = tail.getUint32(end + 12, true);
  const said = tail.getUint32(end + 16, true);
  // Beyond 4 GiB its place is said elsewhere, but it lies before the larger end record and what points there.
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
