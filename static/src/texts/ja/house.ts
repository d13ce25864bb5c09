/** Search, what runs, the trash. */
import type { house as English } from "../en/house.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const house: typeof English = {
  search: {
    title: "検索",
    label: "すべてのチャットを検索",
    placeholder: "語句、または引用符で囲んだ文",
    searching: "検索中",
    count: (n: number) => count(n, { other: "件" }),
    atLeast: (n: number) => `今のところ ${count(n, { other: "件" })}`,
    hits: "検索結果",
    inTitle: "タイトル",
    failed: "検索に失敗しました",
    emptyTitle: "話したことを探す",
    emptyText: "入力するとすべてのチャットを検索します。結果を選ぶとそのメッセージへ移動します。",
    noneTitle: "見つかりませんでした",
    noneText: "すべての語句を含むチャットはありません。語句を減らしてみてください。",
  },

  activity: {
    title: "実行状況",
    running: "実行中",
    ended: "最近終わったもの",
    failed: "実行状況を読み込めませんでした",
    noneTitle: "実行中のものはありません",
    noneText: "返信、ダウンロード、取り込みなどの時間のかかる作業がここに表示されます。離れても続きます。",
    reply: (clock: string) => `返信 ${clock}`,
    stop: "停止",
    stopReply: (title: string) => `「${title}」の返信を停止`,
    cancelJob: (title: string) => `「${title}」を中止`,
    of: (done: string, total: string) => `${total} 中 ${done}`,
    units: { steps: "ステップ", files: "ファイル", items: "件", images: "枚", letters: "文字" },
    states: {
      queued: "待機中",
      running: "実行中",
      verifying: "確認中",
      done: "完了",
      failed: "失敗",
      cancelled: "中止",
    },
  },

  trash: {
    title: "ごみ箱",
    intro: "削除したものは 7 日間ここに残ります。",
    failed: "ごみ箱を読み込めませんでした",
    noneTitle: "ごみ箱は空です",
    noneText: "削除したチャットやメッセージをここから元に戻せます。",
    untitled: "無題",
    removedAt: (when: string) => `削除：${when}`,
    restore: "元に戻す",
    restoreIt: (title: string) => `「${title}」を元に戻す`,
    restored: (title: string) => `「${title}」を元に戻しました`,
    empty: "ごみ箱を空にする",
    emptied: "ごみ箱を空にしました",
    askTitle: "ごみ箱を空にしますか",
    askText: (n: number) => `${count(n, { other: "件" })}を完全に削除します。元には戻せません。`,
    kinds: {
      conversation: "チャット",
      message: "メッセージ",
      character: "キャラクター",
      persona: "ペルソナ",
      workflow: "ワークフロー",
      voice: "音声",
      lorebook: "ロアブック",
      preset: "プリセット",
      attachment: "画像",
    },
  },
};
