/**
 * The mood of a text, by a small lexicon in English, German and Japanese; and the expression that shows it.
 *
 * See docs/decisions/0042-expressions.md.
 */
import type { Expression } from "../../api/types.ts";

interface Mood {
  /** Names of images with this mood: labels of go_emotions, which SillyTavern uses, and other common names. */
  names: string;
  /** Prefixes of words that indicate the mood; for Japanese, substrings. */
  words: string;
  /** Shown if the card has no image of this mood. */
  like?: string;
}

const MOODS: Record<string, Mood> = {
  joy: {
    names: "joy happy happiness smile smiling glad cheerful froh fröhlich freude lächeln glücklich 喜び 嬉しい 笑顔 喜",
    words: "smil grin happy happi cheer joy delight glad beam bright lächel strahl freu fröhlich glücklich froh " +
      "笑顔 微笑 ほほえ 嬉し うれし 喜 楽し にこ",
  },
  amusement: {
    names: "amusement laugh laughing amused playful lachen 笑い 笑",
    words: "laugh chuckl giggl tease teasing smirk playful lach kicher schmunzel grins 笑い 笑う 笑っ くすくす くすり",
    like: "joy",
  },
  love: {
    names: "love affection liebe verliebt loving 愛 恋 好き",
    words: "love loving beloved adore kiss embrac hug cuddl tender lieb küss umarm zärtlich 愛し 大好き 抱きし キス",
    like: "joy",
  },
  desire: {
    names: "desire lust flirt seductive verlangen 誘惑",
    words: "seduc desire longing flirt begehr verführ sehnsucht 誘惑 欲し",
    like: "love",
  },
  admiration: {
    names: "admiration admire approval bewunderung 憧れ",
    words: "admir impress amazing wonderful approv bewunder beeindruck großartig wunderbar 憧れ 素晴らし すごい すてき",
    like: "joy",
  },
  gratitude: {
    names: "gratitude thankful grateful dankbar 感謝",
    words: "thank grateful dank ありがと 感謝",
    like: "joy",
  },
  pride: {
    names: "pride proud smug stolz 自信 誇り",
    words: "proud pride smug triumph stolz 誇ら 自慢 得意げ",
    like: "joy",
  },
  excitement: {
    names: "excitement excited optimism eager aufgeregt begeistert 興奮 わくわく",
    words: "excit thrill eager enthusias begeister aufgeregt gespannt 興奮 わくわく ワクワク 張り切",
    like: "joy",
  },
  relief: {
    names: "relief relieved erleichtert 安心",
    words: "relie exhal erleichter 安心 ほっと ホッと",
    like: "joy",
  },
  caring: {
    names: "caring care gentle fürsorge 優しい",
    words: "gentl comfort sooth caring worry sanft tröst fürsorg 優し そっと 慰め",
    like: "love",
  },
  sadness: {
    names: "sadness sad cry crying grief tears traurig trauer weinen 悲しい 悲しみ 泣く 泣き 哀",
    words:
      "sad cry cries cried sob tear weep wept grief griev mourn sorrow traurig wein schluchz träne trauer kummer " +
      "悲し 泣 涙 寂し 切な",
  },
  disappointment: {
    names: "disappointment disappointed remorse regret sorry enttäuscht reue がっかり",
    words:
      "disappoint regret sorry apolog remorse guilt sigh enttäusch reue bedauer schuld seufz がっかり 残念 後悔 ごめん " +
      "ため息 溜め息",
    like: "sadness",
  },
  anger: {
    names: "anger angry mad rage furious wütend wut zornig ärger 怒り 怒る 怒",
    words:
      "anger angry angri fury furious rage snarl growl glare shout yell wüt zorn zornig schrei knurr brüll 怒 睨 にら 叫",
  },
  annoyance: {
    names: "annoyance annoyed disapproval irritated pout genervt 不満 不機嫌",
    words:
      "annoy irritat scowl frown pout huff eyeroll disapprov genervt stirnrunzel schmoll missbillig 不満 不機嫌 イライラ " +
      "むっと ふくれ",
    like: "anger",
  },
  disgust: {
    names: "disgust disgusted ekel 嫌悪",
    words: "disgust revolt repuls nause gross ekel angewidert widerlich 気持ち悪 嫌悪 うんざり",
    like: "anger",
  },
  fear: {
    names: "fear scared afraid terrified horror angst ängstlich 恐怖 怖い 恐れ",
    words:
      "afraid fear scare terrif frighten trembl panic horror angst ängst fürcht furcht zitter panik 怖 恐 震え 怯え",
  },
  nervousness: {
    names: "nervousness nervous worried anxious nervös besorgt 不安 緊張",
    words: "nervous anxious anxiet fidget worri uneas stammer nervös besorgt unruhig stotter 不安 緊張 心配 おどおど",
    like: "fear",
  },
  embarrassment: {
    names: "embarrassment embarrassed blush blushing shy verlegen erröten 照れ 恥ずかしい 赤面",
    words: "blush embarrass flush shy bashful awkward erröte verlegen schüchtern peinlich 照れ 恥ずかし 赤面 頬を染",
    like: "nervousness",
  },
  surprise: {
    names: "surprise surprised shock shocked überrascht erstaunt 驚き 驚く 驚",
    words:
      "surpris shock gasp startl astonish stunn disbelie überrasch erstaun erschrock schock verblüff 驚 びっくり 目を見開 " +
      "まさか",
  },
  confusion: {
    names: "confusion confused verwirrt 混乱 困惑",
    words: "confus puzzl bewilder baffl perplex verwirr ratlos 混乱 困惑 戸惑 首を傾げ 首をかしげ",
    like: "surprise",
  },
  curiosity: {
    names: "curiosity curious realization thinking thoughtful neugierig nachdenklich 好奇心 考え",
    words: "curio wonder intrigu ponder thoughtful neugier nachdenk überleg grübel 興味 気にな 考え込 不思議",
    like: "neutral",
  },
  neutral: {
    names: "neutral default normal idle main base standard calm serious ruhig 通常 普通 無表情 平静",
    words: "",
  },
};

/** Sentences at the end of a reply weigh up to this much more than those at its start. */
const END_WEIGHT = 2;

/** The end of a longer reply is enough. */
const MAX_TEXT = 4000;

/**
 * Chooses the expression that shows the mood of a text; without a mood, the neutral or else the first one.
 *
 * A name of the card that isn't a mood of ours is found in the text as it is.
 */
export function chooseExpression(text: string, expressions: readonly Expression[]): Expression | undefined {
  const own = expressions.filter(({ name }) => !name.includes("/"));
  // If all images are costumes, the first one is shown.
  const costume = expressions[0]?.name.split("/")[0];
  const worn = own.length > 0 ? own : expressions.filter(({ name }) => name.startsWith(`${costume}/`));
  const byName = new Map<string, Expression>();
  const byMood = new Map<string, Expression>();
  for (const expression of worn) {
    const name = normalizeName(expression.name);
    if (!byName.has(name)) byName.set(name, expression);
    const mood = MOOD_BY_NAME.get(name);
    if (mood && !byMood.has(mood)) byMood.set(mood, expression);
  }
  const others = [...byName.keys()].filter((name) => !MOOD_BY_NAME.has(name) && name.length > 1);
  const scores = rateMoods(text.slice(-MAX_TEXT), others);
  for (const [mood] of [...scores].sort((a, b) => b[1] - a[1])) {
    const found = byName.get(mood) ?? findMood(mood, byMood);
    if (found) return found;
  }
  return byMood.get("neutral") ?? worn[0];
}

/** Returns the image of a mood, or of the one most like it. */
function findMood(mood: string, byMood: ReadonlyMap<string, Expression>): Expression | undefined {
  for (let next: string | undefined = mood; next && next !== "neutral"; next = MOODS[next]?.like) {
    const found = byMood.get(next);
    if (found) return found;
  }
  return undefined;
}

/** Scores the moods in a text. @param others Names to find as words of the text. */
function rateMoods(text: string, others: readonly string[]): Map<string, number> {
  const lower = text.toLowerCase();
  const scores = new Map<string, number>();
  const add = (mood: string, at: number) =>
    scores.set(mood, (scores.get(mood) ?? 0) + 1 + (END_WEIGHT - 1) * at / lower.length);
  for (const { 0: word, index } of lower.matchAll(/[\p{Script=Latin}]+/gu)) {
    for (const [stem, mood] of STEMS) if (word.startsWith(stem)) add(mood, index);
    for (const name of others) if (word === name) add(name, index);
  }
  for (const [part, mood] of PARTS) {
    for (let at = lower.indexOf(part); at >= 0; at = lower.indexOf(part, at + part.length)) add(mood, at);
  }
  for (const name of others) if (!isLatin(name) && lower.includes(name)) add(name, lower.lastIndexOf(name));
  return scores;
}

/** `beach/Joy_2` is `joy`. */
function normalizeName(name: string): string {
  return name.split("/").at(-1)!.toLowerCase().replace(/\.[a-z]{3,4}$/, "").replace(/[\s_-]*\d*$/, "").trim();
}

function isLatin(word: string): boolean {
  return /^\p{Script=Latin}/u.test(word);
}

function listWords(field: "names" | "words"): [word: string, mood: string][] {
  return Object.entries(MOODS).flatMap(([mood, entry]) =>
    entry[field].split(" ").filter(Boolean).map((word): [string, string] => [word, mood])
  );
}

const MOOD_BY_NAME = new Map(listWords("names"));
const STEMS = listWords("words").filter(([word]) => isLatin(word));
const PARTS = listWords("words").filter(([word]) => !isLatin(word));
