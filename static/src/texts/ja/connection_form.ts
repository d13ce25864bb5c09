/** The form of a connection, and what a test of one found. */
import type { connectionForm as English } from "../en/connection_form.ts";
import { counter } from "../plural.ts";

const count = counter("ja");

/** Japanese. */
export const connectionForm: typeof English = {
  form: {
    nearby: "このマシンで見つかったもの",
    byHand: "ほかのサーバーやサービス",
    presets: "候補",
    keyNeeded: "このサービスにはキーが必要です。暗号化して保存され、再び表示されることはありません。",
    keyShow: "入力を表示",
    keyHide: "入力を隠す",
    keyExposed:
      "このアドレスは暗号化されていないため、途中でキーを読み取られるおそれがあります。サーバーが対応していれば https:// を使ってください。",
    modelOffered: (n: number) =>
      `空欄なら、提供されている ${count(n, { other: "個のモデル" })}の最初のものを使います。`,
    contextKnown: (tokens: string) => `トークン数です。空欄なら、サーバーが示す ${tokens} になります。`,
    addTitle: "接続を追加",
    editTitle: "接続を編集",
    missing: "この接続はありません",
    name: "名前",
    kind: "種類",
    url: "アドレス",
    urlHint: "例：http://127.0.0.1:8080。/v1 がなければ補われます。",
    key: "API キー",
    keyHint: "キーを求めるサーバーでだけ必要です。暗号化して保存され、再び表示されることはありません。",
    keySaved: "キーは保存済みです。そのまま使うなら空欄にしておいてください。",
    keyMoved:
      "保存されたキーは別のアドレスのもので、引き継がれません。新しいアドレスでキーが必要なら入力し直してください。",
    keyClear: "保存されたキーを削除",
    keyCleared: "キーを削除しました",
    model: "モデル",
    modelHint: "空欄なら、サーバーが最初に示すモデルを使います。",
    context: "コンテキストの大きさ",
    contextHint: "トークン数です。空欄ならサーバーに尋ねます。",
    contextBad: "8192 のような整数のトークン数",
    urlBad: "http:// または https:// で始まるアドレス",
    save: "保存",
    saveAndUse: "保存して使う",
    saveFailed: "接続を保存できませんでした",
    testFailed: "テストを行えませんでした",
  },

  verdict: {
    good: "接続できます",
    bad: "接続できません",
    reachable: "サーバーは応答しています",
    unreachable: "サーバーが応答しません",
    authorized: "アクセスが認められました",
    unauthorized: "アクセスが拒否されました",
    models: (n: number) => count(n, { other: "個のモデルを提供" }),
    context: (n: string) => `コンテキスト ${n} トークン`,
    latency: (ms: number) => `${ms} ミリ秒`,
  },
};
