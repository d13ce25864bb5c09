/** Texts of search, activity and the trash. */
import type { house as English } from "../en/activity.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const house: typeof English = {
  search: {
    title: "検索",
    label: "すべてのチャットを検索",
    placeholder: "キーワード、または“引用符で囲んだ語句”",
    searching: "検索中",
    count: (n: number) => count(n, { other: "件" }),
    atLeast: (n: number) => `今のところ ${count(n, { other: "件" })}`,
    hits: "検索結果",
    inTitle: "タイトル",
    failed: "検索に失敗しました",
    emptyTitle: "チャットを検索",
    emptyText: "入力すると結果が表示されます。選ぶとそのメッセージを開きます。",
    noneTitle: "結果がありません",
    noneText: "すべての語句を含むチャットはありません。語句を減らしてください。",
  },

  activity: {
    title: "実行状況",
    running: "実行中",
    ended: "最近完了したもの",
    failed: "実行中のタスクを読み込めませんでした",
    noneTitle: "実行中のタスクはありません",
    noneText:
      "返信、ダウンロード、インポートなど、時間のかかるタスクがここに表示されます。ページを離れても続行します。",
    reply: (clock: string) => `返信 ${clock}`,
    stop: "停止",
    stopReply: (title: string) => `「${title}」の返信を停止`,
    cancelJob: (title: string) => `「${title}」をキャンセル`,
    of: (done: string, total: string) => `${total} 中 ${done}`,
    units: { steps: "ステップ", files: "ファイル", items: "件", images: "枚", letters: "文字" },
    states: {
      queued: "待機中",
      running: "実行中",
      verifying: "検証中",
      done: "完了",
      failed: "失敗",
      cancelled: "キャンセル済み",
    },
  },

  trash: {
    title: "ごみ箱",
    intro: "削除したものは 7 日間ここに残ります。",
    failed: "ごみ箱を読み込めませんでした",
    noneTitle: "ごみ箱は空です",
    noneText: "削除したチャットやメッセージをここから復元できます。",
    untitled: "無題",
    removedAt: (when: string) => `削除：${when}`,
    restore: "復元",
    restoreIt: (title: string) => `「${title}」を復元`,
    restored: (title: string) => `「${title}」を復元しました`,
    empty: "ごみ箱を空にする",
    emptied: "ごみ箱を空にしました",
    askTitle: "ごみ箱を空にしますか？",
    askText: (n: number) => `${count(n, { other: "件" })}を完全に削除します。元に戻せません。`,
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
