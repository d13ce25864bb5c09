/** Recall: passages of other chats about a question in everyday words. Lexical, by the search of sealed messages. */
import type { Search, SearchHit, SearchPage } from "./search.ts";
import { fold } from "./search_text.ts";

/** A question about other chats. */
export interface RecallRequest {
  query: string;
  /** The chat that asks. It isn't searched. */
  conversationId?: string;
}

/** Passages, those with the most words of the question first, then the newest. */
export interface RecallPage {
  items: SearchHit[];
  /** Ids of conversations that couldn't be searched completely. */
  unreadable?: string[];
}

/** Passages of one answer. */
const MOST_ITEMS = 20;
/** Passages with all words from which no others are looked for. */
const ENOUGH = 5;
/** Words that are looked for one by one, the longest first. */
const MOST_WORDS = 4;

/** Words of questions that say nothing of what they are about. */
const STOP_WORDS = new Set(
  ("a about again all am an and any are as at be been but by can could did do does for from had has have he her him his how i if in " +
    "into is it its just know last me my no not of on or our remember said say she should so some talk talked tell that the their " +
    "them then there they this time to told us was we were what when where which who why will with would you your " +
    "aber als am an auf aus bei bin bist da das dass dem den der des die du ein eine einem einen einer er erinnerst es für " +
    "gesagt gesprochen habe haben hat hatte hatten ich ihr im in ist ja kann mal man mein mich mir mit nach nicht noch nun oder " +
    "sagte sagten sich sie sind so über um und uns unser von vor war waren warum was wann wie wir wird wo wer zu zum zur " +
    "こと これ それ あれ です ます した して する いる ある なに 何 いつ どこ だれ 誰 私 あなた 話 言っ 言い 話し について")
    .split(" "),
);

/** Finds passages of other chats. @throws {AppError} As `Search.search` */
export async function recall(
  search: Pick<Search, "search">,
  { query, conversationId }: RecallRequest,
  client: AbortSignal,
): Promise<RecallPage> {
  const words = extractWords(query);
  const find = (terms: readonly string[]) =>
    search.search({ query: terms.map((term) => `"${term}"`).join(" "), excludedId: conversationId }, client);
  const pages: SearchPage[] = [];
  // Without words of its own, a question is searched for as it is.
  pages.push(
    words.length === 0 ? await search.search({ query, excludedId: conversationId }, client) : await find(words),
  );
  if (words.length > 1 && passagesOf(pages).length < ENOUGH) {
    for (const word of words.slice(0, MOST_WORDS)) pages.push(await find([word]));
  }
  const found = new Map<string, { hit: SearchHit; score: number }>();
  pages.forEach((page, n) => {
    for (const hit of passagesOf([page])) {
      const key = `${hit.conversation_id} ${hit.message_id}`;
      const score = (found.get(key)?.score ?? 0) + (n === 0 ? words.length + 1 : 1);
      found.set(key, { hit: found.get(key)?.hit ?? hit, score });
    }
  });
  const items = [...found.values()]
    .sort((a, b) => b.score - a.score || b.hit.created_at.localeCompare(a.hit.created_at))
    .slice(0, MOST_ITEMS).map(({ hit }) => hit);
  const unreadable = [...new Set(pages.flatMap((page) => page.unreadable ?? []))];
  return { items, ...(unreadable.length > 0 && { unreadable }) };
}

/** Returns the words of a question that say what it is about, the longest first. Quoted phrases stay whole. */
export function extractWords(query: string): string[] {
  const words = new Set<string>();
  const rest = query.replace(/["“”„]([^"“”„]+)["“”„]/g, (_, phrase: string) => {
    if (phrase.trim() !== "") words.add(fold(phrase.trim()));
    return " ";
  });
  // Splits Japanese and Chinese, too.
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(rest)) {
    const word = fold(segment);
    const isParticle = /^\p{Script=Hiragana}{1,2}$/u.test(word);
    if (isWordLike && !isParticle && !STOP_WORDS.has(word) && (word.length > 1 || /\p{Script=Han}/u.test(word))) {
      words.add(word);
    }
  }
  return [...words].sort((a, b) => b.length - a.length);
}

/** Only messages can be quoted, not titles or documents. */
function passagesOf(pages: readonly SearchPage[]): SearchHit[] {
  return pages.flatMap(({ items }) =>
    items.filter((item): item is SearchHit => "message_id" in item && item.message_id !== null)
  );
}
