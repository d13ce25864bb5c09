/**
 * Decodes text of unknown encoding: every candidate decodes strictly, and the most plausible text wins. Plausible is
 * text of common characters of one language, with upper case where it belongs.
 */
import chardet from "chardet";
import {
  countMatches,
  decodeStrictly,
  findWideEncoding,
  TEXT_ENCODINGS,
  type TextEncodingName,
} from "./text_encodings.ts";

/** A decoded text. */
export interface DecodedText {
  text: string;
  encoding: TextEncodingName;
  /** How the encoding was found. `guessed` is certain enough, `unsure` isn't. */
  found: "chosen" | "mark" | "declared" | "valid" | "guessed" | "unsure";
  /** Number of characters that couldn't be decoded. */
  replaced: number;
}

/** What is known about the text besides its bytes. */
export interface EncodingHints {
  /** Chosen by the user. */
  chosen?: string;
  /** Names in the file or its headers, the most trusted first. */
  declared?: readonly (string | undefined)[];
  /** Languages of the user: `"ja"`, `"de-AT"`. */
  languages?: readonly string[];
}

/** Number of bytes that are judged. */
const SAMPLE_BYTES = 64 * 1024;
/** Minimum difference of the best two scores of a certain guess. */
const CLEAR_MARGIN = 0.15;
/** Weight of the statistics of chardet, which need longer texts. */
const STATISTICS_WEIGHT = 0.5;
/** Bonus for an encoding of the user's languages. */
const LANGUAGE_BONUS = 0.2;
/** Share of damaged characters up to which a text is UTF-8. */
const MAX_DAMAGED_SHARE = 1 / 3;

/** Decodes text. A byte order mark comes first, then a declared encoding, valid UTF-8, and the most plausible one. */
export function decode(bytes: Uint8Array, hints: EncodingHints = {}): DecodedText {
  const chosen = toEncodingName(hints.chosen);
  if (chosen !== undefined) return createDecoded(decodeLoosely(bytes, chosen), chosen, "chosen");
  const mark = findMark(bytes);
  if (mark !== undefined) return createDecoded(decodeLoosely(bytes, mark), mark, "mark");
  for (const name of hints.declared ?? []) {
    const encoding = toEncodingName(name);
    // A declaration that was decoded as ASCII can't be of UTF-16: HTML Standard, 13.2.3.2.
    if (encoding === undefined || encoding.startsWith("utf-16")) continue;
    const text = decodeStrictly(bytes, encoding);
    if (text === undefined) continue;
    // Servers and tools that know nothing declare a single-byte encoding. Such text is hardly ever valid UTF-8.
    const isNarrow = /^(windows|iso-8859|macintosh|ibm)/.test(encoding) && /[^\0-\x7f]/.test(text);
    const better = isNarrow ? decodeStrictly(bytes, "utf-8") : undefined;
    return better === undefined ? createDecoded(text, encoding, "declared") : createDecoded(better, "utf-8", "valid");
  }
  const wide = findWideEncoding(bytes);
  if (wide !== undefined) return createDecoded(decodeLoosely(bytes, wide), wide, "guessed");
  if (hasJapaneseEscapes(bytes)) {
    const text = decodeStrictly(bytes, "iso-2022-jp");
    if (text !== undefined) return createDecoded(text, "iso-2022-jp", "guessed");
  }
  const utf8 = decodeStrictly(bytes, "utf-8");
  if (utf8 !== undefined) return createDecoded(utf8, "utf-8", "valid");
  const loose = decodeLoosely(bytes, "utf-8");
  const damaged = countMatches(loose, /\ufffd/g);
  if (damaged <= countMatches(loose, /[^\0-\x7f\ufffd]/g) * MAX_DAMAGED_SHARE) {
    return createDecoded(loose, "utf-8", "valid");
  }
  return guess(bytes, hints.languages ?? []);
}

function findMark(bytes: Uint8Array): TextEncodingName | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  return bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : undefined;
}

/** ESC $ B, ESC $ @ and ESC ( J switch the character sets of ISO-2022-JP (RFC 1468). */
function hasJapaneseEscapes(bytes: Uint8Array): boolean {
  for (let at = bytes.indexOf(0x1b); at >= 0; at = bytes.indexOf(0x1b, at + 1)) {
    if (bytes[at + 1] === 0x24 && (bytes[at + 2] === 0x42 || bytes[at + 2] === 0x40)) return true;
  }
  return false;
}

/** Returns the name of an encoding by any of its labels; `undefined` for unknown ones. */
function toEncodingName(label: string | undefined): TextEncodingName | undefined {
  if (label === undefined) return undefined;
  try {
    const { encoding } = new TextDecoder(label.trim());
    const name = encoding === "gbk" ? "gb18030" : encoding === "koi8-r" ? "koi8-u" : encoding;
    return TEXT_ENCODINGS.find((known) => known === name);
  } catch {
    return undefined;
  }
}

function createDecoded(text: string, encoding: TextEncodingName, found: DecodedText["found"]): DecodedText {
  return { text, encoding, found, replaced: countMatches(text, /\ufffd/g) };
}

function decodeLoosely(bytes: Uint8Array, encoding: TextEncodingName): string {
  return new TextDecoder(encoding).decode(bytes);
}

/** An encoding that is judged by its text. */
interface Candidate {
  encoding: TextEncodingName;
  languages: readonly string[];
  /** From -1 to 1: how plausible a text in this encoding is. */
  judge(text: string): number;
  /** Names of chardet. */
  names: readonly string[];
}

function guess(bytes: Uint8Array, languages: readonly string[]): DecodedText {
  const sample = takeSample(bytes);
  const wanted = new Set(languages.map((tag) => tag.toLowerCase().split("-")[0]!));
  const statistics = new Map(chardet.analyse(sample).map(({ name, confidence }) => [name as string, confidence / 100]));
  const scored = CANDIDATES.flatMap(({ encoding, languages: own, judge, names }) => {
    const text = decodeStrictly(sample, encoding);
    if (text === undefined) return [];
    const known = Math.max(0, ...names.map((name) => statistics.get(name) ?? 0));
    const bonus = own.some((language) => wanted.has(language)) ? LANGUAGE_BONUS : 0;
    return [{ encoding, text, score: judge(text) + known * STATISTICS_WEIGHT + bonus }];
  }).sort((a, b) => b.score - a.score);
  const [best] = scored;
  if (best === undefined) {
    // No encoding fits: the text is damaged, or isn't text. This one decodes any bytes.
    const text = decodeLoosely(bytes, "windows-1252");
    return { text, encoding: "windows-1252", found: "unsure", replaced: countMatches(text, /[\u0080-\u009f]/g) };
  }
  const second = scored.find(({ text }) => text !== best.text);
  const isClear = best.score > 0 && (second === undefined || best.score - second.score >= CLEAR_MARGIN);
  return createDecoded(decodeLoosely(bytes, best.encoding), best.encoding, isClear ? "guessed" : "unsure");
}

/** Returns the part with the first characters beyond ASCII, whole lines if possible. */
function takeSample(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= SAMPLE_BYTES) return bytes;
  const first = Math.max(0, bytes.findIndex((byte) => byte >= 0x80));
  const start = bytes.lastIndexOf(0x0a, first) + 1;
  const end = bytes.lastIndexOf(0x0a, start + SAMPLE_BYTES);
  return bytes.subarray(start, end > start ? end : start + SAMPLE_BYTES);
}

/** Averages the values of the characters beyond ASCII. */
function average(text: string, valueOf: (character: string, before: string, after: string) => number): number {
  let [sum, count, before] = [0, 0, ""];
  const characters = Array.from(text);
  for (const [index, character] of characters.entries()) {
    if (character > "\x7f") {
      sum += valueOf(character, before, characters[index + 1] ?? "");
      count++;
    }
    before = character;
  }
  return count === 0 ? 0 : sum / count;
}

/** Returns the characters of the rows of a double-byte set that its standard fills with the common ones. */
function listLevelOne(encoding: TextEncodingName, firstLead: number, lastLead: number): Set<string> {
  const found = new Set<string>();
  const decoder = new TextDecoder(encoding);
  for (let lead = firstLead; lead <= lastLead; lead++) {
    for (let trail = 0x40; trail <= 0xfe; trail++) {
      const text = decoder.decode(new Uint8Array([lead, trail]));
      if (Array.from(text).length === 1 && text !== "\ufffd") found.add(text);
    }
  }
  return found;
}

/** Judges text in a language of East Asia. @param getCommon The characters of level 1 of its standard. */
function createEastAsianJudge(frequent: string, getCommon: () => Set<string>, letters: RegExp, foreign: RegExp) {
  let common: Set<string> | undefined;
  const most = new Set(frequent);
  return (text: string) => {
    const levelOne = common ??= getCommon();
    return average(text, (character) => {
      if (most.has(character) || letters.test(character)) return 1;
      if (foreign.test(character)) return -0.5;
      if (/[\u3000-\u3002\u300a-\u3011\u2018-\u201d\u2026\u2014\uff01-\uff5e]/.test(character)) return 0.5;
      if (levelOne.has(character)) return 0.5;
      return /\p{Script=Han}|\p{Script=Hangul}/u.test(character) ? -0.3 : /\p{Co}/u.test(character) ? -1 : -0.5;
    });
  };
}

/** Symbols that stand next to words and numbers. */
const TYPOGRAPHY = /[\u00a0\u00a1\u00a3\u00a7\u00a9\u00ab\u00ae\u00b0\u00bb\u00bf\u2010-\u2026\u20ac\u2116\u2122]/;

/** Judges text of an alphabet with words. @param frequent Its letters that make up most of a text, in lower case. */
function createAlphabetJudge(letters: RegExp, frequent: string, share = 0.3) {
  const most = new Set(frequent);
  return (text: string) =>
    average(text, (character, before, after) => {
      if (!letters.test(character)) return judgeSymbol(character, before, after);
      if (isMisplacedCapital(character, before) || isMixed(character, before)) return -1;
      return most.has(character.toLowerCase()) ? 1 : share;
    });
}

/** Judges text in Latin letters: all that are beyond ASCII must be of one language. */
function createLatinJudge(alphabets: readonly string[]) {
  const sets = alphabets.map((letters) => new Set(letters));
  return (text: string) =>
    Math.max(...sets.map((letters) =>
      average(text, (character, before, after) => {
        if (!/\p{L}/u.test(character)) return judgeSymbol(character, before, after);
        if (isMisplacedCapital(character, before)) return -1;
        return letters.has(character) || letters.has(character.toLowerCase()) ? 0.8 : -0.8;
      })
    ));
}

function judgeSymbol(character: string, before: string, after: string): number {
  const isInWord = /\p{L}/u.test(before) && /\p{L}/u.test(after);
  if (!TYPOGRAPHY.test(character) || (isInWord && !/[\u2010-\u2015\u2019\u00a0]/.test(character))) return -1;
  return 0.3;
}

function isMisplacedCapital(character: string, before: string): boolean {
  return /\p{Lu}/u.test(character) && /\p{Ll}/u.test(before);
}

/** Reports whether two letters of different scripts touch. */
function isMixed(character: string, before: string): boolean {
  return /[a-z]/i.test(before) && !/\p{Script=Latin}/u.test(character);
}

/** Hebrew has other forms of some letters for the end of a word. */
function judgeHebrew(text: string): number {
  const frequent = new Set("יוהלאמרתבש");
  return average(text, (character, before, after) => {
    if (!/[א-ת]/.test(character)) return judgeSymbol(character, before, after);
    if (/[ךםןףץ]/.test(character) && /[א-ת]/.test(after) || isMixed(character, before)) return -1;
    return frequent.has(character) ? 1 : 0.3;
  });
}

const NEVER = /(?!)/;
const KANA = /[\u3041-\u3096\u30a1-\u30fa\u30fc]/;
const judgeJapanese = createEastAsianJudge(
  "日一国人年大十二本中長出三時行見月後前生五間上東四今金九入学高円子外八六下来気小七山話女北午百書先名川千水半男西電校語土木聞食車何" +
    "南万毎白天母火右読友左休父雨会同事自社発者地業方新場員立開手力問代明動京目通言理体田主題意不作用度強公持野以思家世多正安院心界" +
    "教文元重近考画海売知道集別物使品計死特私始朝運終台広住真有口少町料工建空急止送切転研足究楽起着店病質待試族銀早映親験英医仕去味" +
    "写字答夜音注帰古歌買悪図週室歩風紙黒花春赤青館屋色走秋夏習駅洋旅服数量価格番号席座港",
  () => listLevelOne("euc-jp", 0xb0, 0xcf),
  KANA,
  /[\uff61-\uff9f]/,
);
const judgeSimplified = createEastAsianJudge(
  "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学" +
    "如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正" +
    "业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿" +
    "原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直" +
    "德资命山金指许统区保至队形社便空决治展马科五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交" +
    "规万取拉格望觉术领共确传师观清今切院让识候带导争运号价姓名电话地址",
  () => listLevelOne("gb18030", 0xb0, 0xd7),
  NEVER,
  KANA,
);
const judgeTraditional = createEastAsianJudge(
  "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成方多經麼去法學" +
    "如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正" +
    "業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒" +
    "原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直" +
    "德資命山金指許統區保至隊形社便空決治展馬科五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交" +
    "規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運號價姓名電話地址",
  () => listLevelOne("big5", 0xa4, 0xc6),
  NEVER,
  KANA,
);
const judgeKorean = createEastAsianJudge(
  "이다는의에하고을가한를은지서로기사대자도어나들해그인리시여라아보정원일수있제부전상동구만면것우과었주않스장모았위세습니까요네저무선" +
    "조신공국연경계문소성방내관생거당학중실미분게와했되안때데간진년월말름호품번",
  () => listLevelOne("euc-kr", 0xb0, 0xc8),
  NEVER,
  /\p{Script=Han}|[\u3041-\u30fa]/u,
);
const judgeCyrillic = createAlphabetJudge(/[\u0401-\u045f\u0490\u0491]/, "оеаинтсрвлкмдпуяы");
const judgeWestern = createLatinJudge([
  "äöüß",
  "àâæçéèêëîïôœùûüÿ",
  "áéíóúüñªº",
  "áâãàçéêíóôõúü",
  "àèéìòùî",
  "åäöæøéü",
  "áéíóúýþðæö",
  "ëïéèöüó",
]);
const judgeCentral = createLatinJudge([
  "ąćęłńóśźż",
  "áčďéěíňóřšťúůýž",
  "áäčďéíĺľňóôŕšťúýž",
  "áéíóöőúüű",
  "ăâîșțşţ",
  "čćđšž",
]);
const judgeTurkish = createLatinJudge(["çğıöşüâîû\u0130"]);
const judgeBaltic = createLatinJudge(["ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"]);
const judgeGreek = createAlphabetJudge(/[\u0384-\u03ce]/, "αοιετσνηυρπκςάέίόήώύ");
const judgeArabic = createAlphabetJudge(/[\u060c\u061b\u061f\u0621-\u0652\u0679-\u06d2]/, "اليمنوتربعدةكهسأ");
const judgeThai = createAlphabetJudge(/[\u0e01-\u0e5b]/, "านรอกเงมยลวดทสตะปบคหแจพชขใไโ่้ีัิ์ื็ุูำ", 0.4);

const WESTERN = ["en", "de", "fr", "es", "pt", "it", "nl", "sv", "da", "nb", "fi", "is"];
const CENTRAL = ["pl", "cs", "sk", "hu", "ro", "hr", "sl"];
const CYRILLIC = ["ru", "uk", "bg", "sr", "be"];

/** The more common ones first: of two equal scores, the first wins. */
const CANDIDATES: readonly Candidate[] = [
  { encoding: "windows-1252", languages: WESTERN, judge: judgeWestern, names: ["windows-1252", "ISO-8859-1"] },
  { encoding: "shift_jis", languages: ["ja"], judge: judgeJapanese, names: ["Shift_JIS"] },
  { encoding: "gb18030", languages: ["zh"], judge: judgeSimplified, names: ["GB18030"] },
  { encoding: "euc-kr", languages: ["ko"], judge: judgeKorean, names: ["EUC-KR"] },
  { encoding: "big5", languages: ["zh"], judge: judgeTraditional, names: ["Big5"] },
  { encoding: "euc-jp", languages: ["ja"], judge: judgeJapanese, names: ["EUC-JP"] },
  { encoding: "windows-1251", languages: CYRILLIC, judge: judgeCyrillic, names: ["windows-1251"] },
  { encoding: "koi8-u", languages: CYRILLIC, judge: judgeCyrillic, names: ["KOI8-R"] },
  { encoding: "windows-1250", languages: CENTRAL, judge: judgeCentral, names: ["windows-1250"] },
  { encoding: "windows-1254", languages: ["tr"], judge: judgeTurkish, names: ["windows-1254", "ISO-8859-9"] },
  { encoding: "windows-1253", languages: ["el"], judge: judgeGreek, names: ["windows-1253", "ISO-8859-7"] },
  { encoding: "windows-1255", languages: ["he"], judge: judgeHebrew, names: ["windows-1255", "ISO-8859-8"] },
  { encoding: "windows-1256", languages: ["ar"], judge: judgeArabic, names: ["windows-1256", "ISO-8859-6"] },
  { encoding: "windows-1257", languages: ["lt", "lv", "et"], judge: judgeBaltic, names: ["windows-1257"] },
  { encoding: "windows-874", languages: ["th"], judge: judgeThai, names: [] },
  { encoding: "iso-8859-2", languages: CENTRAL, judge: judgeCentral, names: ["ISO-8859-2"] },
  { encoding: "iso-8859-5", languages: CYRILLIC, judge: judgeCyrillic, names: ["ISO-8859-5"] },
  { encoding: "ibm866", languages: CYRILLIC, judge: judgeCyrillic, names: [] },
  { encoding: "macintosh", languages: WESTERN, judge: judgeWestern, names: [] },
];
