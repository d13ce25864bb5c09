/** キャラクター、ペルソナ、ワークフロー、音声の以前のバージョン。 */
import type { Texts } from "../en/en.ts";

/** Japanese. */
export const history: Pick<Texts, "history"> = {
  history: {
    open: "以前のバージョン",
    title: (name) => `以前のバージョン: ${name}`,
    intro: "変更のたびに、置き換えられた内容が保存されます（最大50件、30日間）。",
    failed: "以前のバージョンを読み込めませんでした",
    none: "以前のバージョンはまだありません。最初の変更で作られます。",
    restore: "復元",
    restoreFailed: "このバージョンを復元できませんでした",
    restoreOf: (moment) => `${moment}に置き換えられたバージョンを復元`,
    restored: (name) => `${name}を復元しました`,
    same: "テキストは現在と同じです。",
    causes: {
      put: "保存",
      patch: "保存",
      avatar: "画像を置き換え",
      portrait: "肖像を描画",
      restore: "以前のバージョンを復元",
    },
    portraitDrawn: "肖像を描きました",
    exportTooLarge:
      "このファイルはParlorの取り込み上限を超えています。ほかのプログラムでは開けるかもしれませんが、Parlorには取り込めません。",
  },
};
