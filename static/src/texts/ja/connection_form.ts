/** Texts of the connection form and the connection test. */
import type { connectionForm as English } from "../en/connection_form.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const connectionForm: typeof English = {
  form: {
    nearby: "このマシンで見つかったもの",
    byHand: "その他のサーバーやサービス",
    presets: "候補",
    keyNeeded: "このサービスには API キーが必要です。暗号化して保存され、再び表示されることはありません。",
    keyShow: "キーを表示",
    keyHide: "キーを隠す",
    keyExposed:
      "この URL は暗号化されていないため、ネットワーク上の人にキーを読み取られるおそれがあります。サーバーが対応している場合は https:// を使ってください。",
    modelOffered: (n: number) => `空欄にすると、${count(n, { other: "個のモデル" })}のうち最初のものを使います。`,
    contextKnown: (tokens: string) => `トークン数です。空欄にすると、サーバーが報告した ${tokens} を使います。`,
    addTitle: "接続を追加",
    editTitle: "接続を編集",
    missing: "この接続は存在しません",
    name: "名前",
    kind: "種類",
    url: "URL",
    urlHint: "例：http://127.0.0.1:8080。/v1 がない場合は追加されます。",
    key: "API キー",
    keyHint: "サーバーが求める場合のみ必要です。暗号化して保存され、再び表示されることはありません。",
    keySaved: "キーは保存済みです。空欄のままにすると、そのキーを使います。",
    keyMoved: "保存されたキーは別の URL のもので、使用されません。新しいサーバーにキーが必要な場合は入力してください。",
    keyClear: "保存されたキーを削除",
    keyCleared: "キーを削除しました",
    model: "モデル",
    modelHint: "空欄にすると、サーバーの最初のモデルを使います。",
    context: "コンテキストサイズ",
    contextHint: "トークン数です。空欄にするとサーバーに問い合わせます。",
    contextBad: "8192 のような整数のトークン数を入力してください",
    urlBad: "http:// または https:// で始まる URL を入力してください",
    save: "保存",
    saveAndUse: "保存して使う",
    saveFailed: "接続を保存できませんでした",
    testFailed: "テストを実行できませんでした",
  },

  connectionTest: {
    good: "接続できます",
    bad: "接続できません",
    reachable: "サーバーに接続できます",
    unreachable: "サーバーに接続できません",
    authorized: "アクセスが許可されました",
    unauthorized: "アクセスが拒否されました",
    models: (n: number) => count(n, { other: "個のモデルを利用可能" }),
    context: (n: string) => `コンテキストサイズ：${n} トークン`,
    latency: (ms: number) => `${ms} ミリ秒`,
  },
};
