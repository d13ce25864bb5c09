/** Words used everywhere, and what the frame says. */
import type { common as English } from "../en/common.ts";

/** Japanese. */
export const common: typeof English = {
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
  chunkFailed: "ページのこの部分を読み込めませんでした",
  chunkFailedText: "サーバーが更新されたのかもしれません。ページを再読み込みすると新しい版になります。",

  errors: {
    noAnswer: "サーバーが応答しません",
    status: (status: number) => `サーバーがステータス ${status} を返しました`,
    replyFailed: "返信は理由が示されないまま失敗しました",
  },

  banner: {
    untrustedProxy:
      "登録されていないプロキシがこのサーバーにリクエストを転送しています。trusted_proxies に登録されるまで、Parlor は誰からのアクセスかを判断できません。",
    bareProxy:
      "このページは、サーバーからは見えないアドレスで開かれました。プロキシがアクセス元を隠しています。サインインなしのアクセスは再起動まで無効です。loopback_auth_bypass = false を設定し、プロキシを trusted_proxies に登録してください。",
    offline: "サーバーに接続できません。再試行しています。",
  },

  refused: {
    signIn: "サインインが必要です",
    signInText: "このサーバーは保護されています。サーバーが動いているマシンで localhost のアドレスを開いてください。",
    host: "このアドレスは許可されていません",
    hostText:
      "呼び出しに使われた名前をサーバーが認識していません。allowed_hosts に追加してから再読み込みしてください。",
  },

  unknown: { title: "ここには何もありません", text: "このアドレスにページはありません。", home: "チャットへ" },
};
