/** The sidebar and the list of chats. */
import type { nav as English } from "../en/nav.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const nav: typeof English = {
  nav: {
    label: "チャットと設定",
    open: "チャット一覧を開く",
    fold: "サイドバーを隠す",
    unfold: "サイドバーを表示",
    characters: "キャラクター",
    newChat: "新しいチャット",
    chats: "チャット",
    settings: "設定",
    today: "今日",
    yesterday: "昨日",
    thisWeek: "今週",
    none: "チャットはここに並びます。",
    untitled: "無題",
    failed: "チャット一覧を読み込めませんでした",
    answering: "返信を作成中",
    replyEnded: "返信が終わりました",
    search: "検索",
    activity: "実行状況",
    runningCount: (n: number) => `、${n} 件実行中`,
    pinned: "ピン留め",
    chatCount: (n: number) => count(n, { other: "件のチャット" }),
    menu: (title: string) => `「${title}」の操作`,
    rename: "名前を変更",
    pin: "ピン留めする",
    unpin: "ピン留めを外す",
    file: "フォルダーに入れる",
    delete: "削除",
    renameTitle: "チャットの名前を変更",
    titleLabel: "タイトル",
    fileTitle: "チャットをフォルダーに入れる",
    folderLabel: "フォルダー",
    folderHint: "新しい名前を入れると新しいフォルダーができます。最後のチャットがなくなるとフォルダーも消えます。",
    unfile: "フォルダーから出す",
    removed: "チャットを削除しました",
    skip: "会話へ移動",
  },
};
