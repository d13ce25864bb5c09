/** Personas: who the owner is in a chat. */
import type { personas as English } from "../en/personas.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const personas: typeof English = {
  personas: {
    title: "ペルソナ",
    intro: "チャットでのあなた。説明はモデルに伝えられます。",
    add: "新しいペルソナ",
    import: "読み込む",
    imported: (n: number) => `ペルソナを ${count(n, { other: "件" })}読み込みました`,
    open: "開く",
    exportCard: "カードを書き出す",
    addTitle: "新しいペルソナ",
    editTitle: "ペルソナを編集",
    loadFailed: "ペルソナを読み込めませんでした",
    empty: "ペルソナはまだありません",
    emptyText: "ない場合は自分の名前で話します。",
    noDescription: "説明なし",
    isDefault: "既定",
    setDefault: "既定にする",
    unsetDefault: "既定にしない",
    more: (name: string) => `${name}の操作`,
    remove: "削除",
    removed: (name: string) => `${name}を削除しました`,
    missing: "このペルソナは存在しません",
    name: "名前",
    description: "説明",
    descriptionHint: "相手から見えること、知られていること。",
    picture: "画像を選ぶ",
    saved: (name: string) => `${name}を保存しました`,
    saveFailed: "ペルソナを保存できませんでした",
    clash: "このペルソナは別の場所で変更されました",
    clashText: (name: string, description: string) =>
      `現在の内容：${name}。${description} もう一度保存すると、あなたの内容に置き換わります。`,
    choose: "ペルソナを選ぶ",
    nobody: "ペルソナなし",
    you: (name: string) => `あなた: ${name}`,
    speakingAs: (name: string) => `${name}として話しています`,
    none: "自分の名前で",
    manage: "ペルソナを管理",
  },
};
