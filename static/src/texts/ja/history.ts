/** Texts of earlier versions of characters, personas, workflows and voices. */
import type { Texts } from "../en/en.ts";

/** Japanese. */
export const history: Pick<Texts, "history"> = {
  history: {
    open: "以前のバージョン",
    title: (name) => `以前のバージョン：${name}`,
    intro: "変更のたびに前のバージョンを保存します（最大 50 件、30 日間）。",
    failed: "以前のバージョンを読み込めませんでした",
    none: "以前のバージョンはまだありません。最初の変更で作成されます。",
    restore: "復元",
    restoreFailed: "このバージョンを復元できませんでした",
    restoreOf: (moment) => `${moment} に置き換えられたバージョンを復元`,
    restored: (name) => `${name}を復元しました`,
    same: "テキストに変更はありません。",
    causes: {
      put: "保存",
      patch: "保存",
      avatar: "画像を差し替え",
      portrait: "ポートレートを生成",
      restore: "以前のバージョンを復元",
    },
    portraitDrawn: "ポートレートを生成しました",
    exportTooLarge:
      "このファイルは Parlor のインポート上限を超えています。ほかのプログラムでは開ける可能性がありますが、Parlor にはインポートできません。",
  },
};
