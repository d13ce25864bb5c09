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
    more: "詳細設定",
    kindHint: "サーバーとの通信方法です。",
    urlHintOllama: "例：http://127.0.0.1:11434。",
    contextOllama: "最大コンテキスト",
    contextHintOllama:
      "トークン数です。チャットに必要な分だけ、この値まで要求します。空欄にするとモデルの最大値まで使います。",
    server: "サーバーソフトウェア",
    serverHint: "どの設定をどの名前で送るかを決めます。",
    serverAuto: (title: string | undefined) => title ? `自動（${title}）` : "自動",
    headers: "追加のヘッダー",
    headersHint: "すべてのリクエストで送信されます。値は暗号化して保存され、再び表示されることはありません。",
    headerName: "ヘッダー名",
    headerValue: "値",
    headerSaved: "保存済み。入力すると置き換わります",
    headerNameBad: "X-Title のようなヘッダー名を入力してください",
    headerValueBad: "1 行の値を入力してください",
    headersMoved: "保存されたヘッダーの値は別の URL のもので、送信されません。もう一度入力してください。",
    addHeader: "ヘッダーを追加",
    removeHeader: (name: string) => `ヘッダー ${name} を削除`,
    extraBody: "追加のフィールド",
    extraBodyHint:
      "すべてのチャットリクエストに加える JSON オブジェクトです。チャットとプリセットの設定が優先されます。",
    extraBodyBad: (problem: string) => `JSON として正しくありません：${problem}`,
    extraBodyNoObject: '{"top_k": 40} のような JSON オブジェクトを入力してください',
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

  connectionCard: {
    suggestOllama:
      "このサーバーは Ollama です。独自の API を使うと、Parlor がコンテキストサイズを指定でき、チャットの一部が黙って失われることがなくなります。",
    switchToOllama: "Ollama の API に切り替える",
    switched: (name: string) => `「${name}」は Ollama の API を使うようになりました`,
    refused: (n: number) => count(n, { other: "件の設定をサーバーが拒否" }),
    refusedHint: "これらのモデルには当面送信しません。",
    refusedUntil: (date: string) => `${date} まで`,
    tryAgain: "もう一度試す",
    forgotten: "これらの設定を再び送信します",
    server: (title: string) => `サーバー：${title}`,
    answers: (model: string) => `サーバーの最初のモデル（${model}）`,
    headers: (names: string) => `追加のヘッダー：${names}`,
    notices: {
      model_spills: "モデルがグラフィックメモリに収まらず、一部がメインメモリで動くため、返信が遅くなります。",
    },
  },
};
