/** Texts of the list of connections and their state. */
import type { connections as English } from "../en/connections.ts";

/** Japanese. */
export const connections: typeof English = {
  connection: {
    none: "モデルが接続されていません",
    checking: "モデルを確認しています",
    away: "接続できません",
    demo: "デモ",
    states: {
      unknown: "未テスト",
      running: "モデルを確認しています",
      good: "準備完了",
      bad: "接続できません",
      refused: "アクセスが拒否されました",
      starting: "モデルを読み込み中",
      busy: "混雑中",
      failing: "前回の返信に失敗",
    },
  },

  firstRun: {
    title: "言語モデルを接続する",
    text: "現在は内蔵のデモが返信しています。デモは言語モデルではありません。Parlor はこのマシンでモデルを探せます。",
    find: "モデルを探す",
    manual: "URL を入力",
    later: "後で",
  },
};
