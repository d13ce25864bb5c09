/** Texts of search, activity, and selecting several items in a list. */
import type { lists as English } from "../en/lists.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const lists: typeof English = {
  search: {
    page: (n: number) => `${n}ページ`,
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
    clear: "検索をクリア",
    noneTitle: "結果がありません",
    noneText: "すべての語句を含むチャットはありません。語句を減らしてください。",
  },

  share: {
    title: "受信した内容",
    intro: "別のアプリまたはウェブサイトから受信しました。チャットに追加するまで、この端末だけに保存されます。",
    noneTitle: "待っている内容はありません",
    noneText: "ほかのアプリから Parlor に共有した内容は、最長7日間ここに残ります。",
    untitled: "受信した内容",
    received: (time: string) => `受信：${time}`,
    files: "ファイル",
    delete: "削除",
    deleteOf: (title: string) => `「${title}」を削除`,
    waiting: (n: number) => `別のアプリまたはウェブサイトから受信した内容 ${count(n, { other: "件" })}`,
    problems: {
      not_ready: "Parlor の準備ができていませんでした。もう一度共有してください。",
      full:
        "最後の内容は保存されませんでした。すでに10件または100 MBの内容が待っています。追加または削除してから、もう一度共有してください。",
      too_large:
        "最後の内容は100 MBを超えるため保存されませんでした。大きなファイルはチャットでアップロードしてください。",
      empty: "最後の内容は空でした。",
    },
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
    counted: {
      steps: (n: number) => count(n, { other: "ステップ" }),
      files: (n: number) => count(n, { other: "ファイル" }),
      items: (n: number) => count(n, { other: "件" }),
      images: (n: number) => count(n, { other: "枚" }),
      letters: (n: number) => count(n, { other: "文字" }),
    },
    states: {
      queued: "待機中",
      running: "実行中",
      verifying: "検証中",
      done: "完了",
      failed: "失敗",
      cancelled: "キャンセル済み",
    },
  },

  selection: {
    label: "選択中の項目",
    end: "選択を終了",
    all: "すべて選択",
    export: "エクスポート",
    count: (n: number) => `${n}件を選択中`,
    fileChats: (n: number) => `チャット${n}件をフォルダーに移動`,
    chatsRemoved: (n: number) => `チャット${n}件を削除しました`,
    chatsFiled: (n: number) => `チャット${n}件を移動しました`,
    chatsPinned: (n: number) => `チャット${n}件をピン留めしました`,
    chatsUnpinned: (n: number) => `チャット${n}件のピン留めを外しました`,
    fileCharacters: (n: number) => `キャラクター${n}件をフォルダーに移動`,
    charactersFiled: (n: number) => `キャラクター${n}件を移動しました`,
    charactersRemoved: (n: number) => `キャラクター${n}件を削除しました`,
    favored: (n: number) => `キャラクター${n}件をお気に入りに追加しました`,
    unfavored: (n: number) => `キャラクター${n}件をお気に入りから外しました`,
    favorite: "お気に入りに追加",
    unfavorite: "お気に入りから外す",
  },
};
