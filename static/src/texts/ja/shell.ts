/** Texts used everywhere, and those of the page frame, the sidebar, the chat list and the command palette. */
import type { shell as English } from "../en/shell.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const shell: typeof English = {
  locale: "ja",
  product: "Parlor",
  close: "閉じる",
  cancel: "キャンセル",
  save: "保存",
  undo: "元に戻す",
  retry: "もう一度試す",
  reload: "ページを再読み込み",
  details: "詳細",
  requestId: (id: string) => `リクエスト ${id}`,
  loading: "読み込み中",
  hiddenShown: "隠れた文字を表示した内容",
  mixedScripts: (scripts: string) => `${scripts}の混在`,
  chunkFailed: "ページのこの部分を読み込めませんでした",
  chunkFailedText: "サーバーが更新された可能性があります。再読み込みして最新版を表示してください。",

  errors: {
    noAnswer: "サーバーが応答しません",
    proxySignIn: "サーバーの手前にあるプロキシでのサインインの有効期限が切れました",
    queued: "まだ送信されていません。サーバーが応答したら送信します。",
    inTrash: "ゴミ箱の中にあります。設定の「ゴミ箱」で復元してから、もう一度お試しください。",
    status: (status: number) => `サーバーがステータス ${status} を返しました`,
    replyFailed: "不明な理由で返信に失敗しました",
  },

  banner: {
    untrustedProxy:
      "プロキシがこのサーバーにリクエストを転送していますが、trusted_proxies に登録されていません。アクセス元を判別できるように登録してください。",
    bareProxy:
      "このページは、アクセス元を隠すプロキシ経由で開かれました。サーバーを再起動するまで、サインインなしのアクセスは無効です。loopback_auth_bypass = false を設定し、プロキシを trusted_proxies に追加してください。",
    offline: "サーバーに接続できません。再試行しています。",
    proxySignIn:
      "サーバーの手前にあるプロキシでのサインインの有効期限が切れました。未送信の変更はこのブラウザーに残り、サインイン後に送信されます。",
    toProxySignIn: "プロキシにサインイン",
  },

  refused: {
    signIn: "サインインが必要です",
    signInText:
      "このサーバーは保護されています。サーバーが動いているマシンで、localhost のアドレスから開いてください。",
    host: "許可されていないアドレスです",
    hostText: "サーバーがこのホスト名を認識できません。allowed_hosts に追加してから再読み込みしてください。",
    localhostText: "Parlor は trusted_proxies のプロキシ経由でのみ利用できます。プロキシのアドレスを使ってください。",
  },

  unknown: {
    title: "ページが見つかりません",
    text: "このアドレスにページはありません。",
    home: "チャットへ",
  },

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
    library: "ライブラリ",
    activity: "実行状況",
    runningCount: (n: number) => `、${n} 件実行中`,
    branch: "分岐",
    unread: "未読",
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
    print: "印刷",
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
    starters: "はじめ方の例",
    inserted: "例文を挿入しました",
    starterTexts: [
      { label: "説明してもらう", text: "次のことを、例を挙げてわかりやすく説明してください：" },
      { label: "文章を直す", text: "次の文章を、意味と調子を変えずに改善し、変更点を挙げてください：\n\n" },
      { label: "計画を立てる", text: "次の計画を手伝ってください。まず必要なことを質問してください：" },
    ],
    replies: (n: number) => count(n, { other: "件の返信を生成中" }),
    show: "表示",
  },

  palette: {
    title: "コマンド",
  },
};
