/** Texts used everywhere, and those of the page frame. */
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
  chunkFailedText: "サーバーが更新された可能性があります。再読み込みして最新版を表示してください。",

  errors: {
    noAnswer: "サーバーが応答しません",
    status: (status: number) => `サーバーがステータス ${status} を返しました`,
    replyFailed: "不明な理由で返信に失敗しました",
  },

  banner: {
    untrustedProxy:
      "プロキシがこのサーバーにリクエストを転送していますが、trusted_proxies に登録されていません。アクセス元を判別できるように登録してください。",
    bareProxy:
      "このページは、アクセス元を隠すプロキシ経由で開かれました。サーバーを再起動するまで、サインインなしのアクセスは無効です。loopback_auth_bypass = false を設定し、プロキシを trusted_proxies に追加してください。",
    offline: "サーバーに接続できません。再試行しています。",
  },

  refused: {
    signIn: "サインインが必要です",
    signInText:
      "このサーバーは保護されています。サーバーが動いているマシンで、localhost のアドレスから開いてください。",
    host: "許可されていないアドレスです",
    hostText: "サーバーがこのホスト名を認識できません。allowed_hosts に追加してから再読み込みしてください。",
    localhostText: "Parlor は trusted_proxies のプロキシ経由でのみ開けます。プロキシのアドレスを使ってください。",
  },

  unknown: {
    title: "ページが見つかりません",
    text: "このアドレスにページはありません。",
    home: "チャットへ",
  },
};
