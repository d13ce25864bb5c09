/** Texts of comparing two versions of a message. */
import type { Texts } from "../en/en.ts";

/** Japanese. */
export const compare: Pick<Texts, "compare"> = {
  compare: {
    title: "バージョンを比較",
    failed: "バージョンを読み込めませんでした",
    first: "1つ目のバージョン",
    second: "2つ目のバージョン",
    hint: "一方のバージョンにしかない部分には下線が付いています。",
    same: "どちらのバージョンも同じ文章です。",
    tooDifferent: "違いが大きすぎるため、変更箇所を表示できません。",
    show: "チャットに表示",
    isShown: "チャットに表示中",
  },
};
