/** Texts of the sidebar and the chat list. */
import type { nav as English } from "../en/nav.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const nav: typeof English = {
  nav: {
    label: "チャットと設定",
    open: "チャット一覧を開く",
    fold: "サイドバーを非表示",
    unfold: "サイドバーを表示",
    characters: "キャラクター",
    newChat: "新しいチャット",
    chats: "チャット",
    settings: "設定",
    today: "今日",
    yesterday: "昨日",
    thisWeek: "今週",
    none: "チャットはここに表示されます。",
    untitled: "無題",
    failed: "チャット一覧を読み込めませんでした",
    answering: "返信を作成中",
    replyEnded: "返信が完了しました",
    search: "検索",
    activity: "実行状況",
    runningCount: (n: number) => `、${n} 件実行中`,
    branch: "分岐",
    waitingCalls: (n: number) => `承認待ち ${n} 件`,
    pinned: "ピン留め",
    chatCount: (n: number) => count(n, { other: "件のチャット" }),
    menu: (title: string) => `「${title}」の操作`,
    select: "選択",
    rename: "名前を変更",
    pin: "ピン留めする",
    unpin: "ピン留めを外す",
    file: "フォルダーに移動",
    exportAs: (format: string) => `${format} でエクスポート`,
    delete: "削除",
    renameTitle: "チャットの名前を変更",
    titleLabel: "タイトル",
    fileTitle: "チャットをフォルダーに移動",
    folderLabel: "フォルダー",
    folderHint: "新しい名前を入力するとフォルダーが作成されます。空のフォルダーは自動的に消えます。",
    removeFromFolder: "フォルダーから外す",
    removed: "チャットを削除しました",
    skip: "チャットへスキップ",
  },
  home: {
    continue: "チャットを続ける",
    all: "すべてのキャラクター",
    addCharacter: "キャラクターを追加",
    starters: "書き出し",
    starterTexts: [
      { label: "説明してもらう", text: "次のことを、例を挙げてわかりやすく説明してください：" },
      { label: "文章を直す", text: "次の文章を、意味と調子を変えずに改善し、変更点を挙げてください：\n\n" },
      { label: "計画を立てる", text: "次の計画を手伝ってください。まず必要なことを質問してください：" },
    ],
    replies: (n: number) => count(n, { other: "件の返信を生成中" }),
    show: "表示",
  },
};
