/** Texts of personas. */
import type { personas as English } from "../en/personas.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const personas: typeof English = {
  personas: {
    title: "ペルソナ",
    intro: "チャットでのあなたの役割です。説明はモデルに送信されます。",
    add: "新しいペルソナ",
    import: "インポート",
    imported: (n: number) => `ペルソナを ${count(n, { other: "件" })}インポートしました`,
    open: "開く",
    exportCard: "カードをエクスポート",
    addTitle: "新しいペルソナ",
    editTitle: "ペルソナを編集",
    loadFailed: "ペルソナを読み込めませんでした",
    empty: "ペルソナはまだありません",
    emptyText: "ペルソナがない場合は、自分の名前でチャットします。",
    noDescription: "説明なし",
    isDefault: "既定",
    setDefault: "既定に設定",
    unsetDefault: "既定を解除",
    more: (name: string) => `${name}のその他の操作`,
    remove: "削除",
    removed: (name: string) => `${name}を削除しました`,
    missing: "このペルソナは存在しません",
    name: "名前",
    description: "説明",
    descriptionHint: "相手から見たあなたの姿や、知られていること。",
    picture: "画像を選択",
    saved: (name: string) => `${name}を保存しました`,
    saveFailed: "ペルソナを保存できませんでした",
    clash: "このペルソナは別の場所で変更されました",
    clashText: (name: string, description: string) =>
      `現在の内容：${name}。${description} もう一度保存すると、あなたの内容で上書きされます。`,
    choose: "ペルソナを選択",
    nobody: "ペルソナなし",
    you: (name: string) => `あなた：${name}`,
    speakingAs: (name: string) => `${name}として話しています`,
    none: "自分の名前",
    manage: "ペルソナを管理",
  },
};
