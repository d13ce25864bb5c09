/** Texts of the first visit. */
import type { setup as English } from "../en/setup.ts";

/** Japanese. */
export const setup: typeof English = {
  firstRun: {
    title: "言語モデルを接続する",
    text:
      "現在は内蔵のデモだけが返信します。デモは言語モデルではありません。このマシンにある言語モデルを Parlor が探せます。",
    find: "モデルを探す",
    manual: "URL を入力",
    later: "後で",
  },

  welcome: {
    step: (at: number, of: number) => `${of} ステップ中 ${at}`,
    titles: { model: "モデルを選択", name: "あなたの名前", passkey: "Parlor をパスキーで保護する" },
    modelText: "チャットには言語モデルが必要です。このマシンのサーバーを探しています。",
    modelThere: (name: string) => `「${name}」を使用しています。設定でいつでも変更できます。`,
    nameHint: "キャラクターやモデルがあなたを呼ぶ名前です。このサーバーに保存され、使用するモデルにのみ送信されます。",
    passkeyLocal:
      "このマシンではパスキーは不要です。別のデバイスからはパスキーが必要で、アドレスごとに作成します。このアドレスのパスキーを今作成できます。",
    passkeyThere: "このアドレスにはすでにパスキーがあります。別のデバイスは「設定」→「プライバシー」で追加できます。",
    goOn: "続ける",
    skip: "スキップ",
    start: "チャットを始める",
    container:
      "Parlor はコンテナーの中で動いており、その中だけを探しています。ホストのマシンも探すには、compose.yaml のようにこの変数を設定し、コンテナーを再起動してください。",
    elsewhere: (hosts: string) =>
      `Parlor は ${hosts} を探しました。そこのサーバーは、ほかのマシンからの接続を受け付ける場合にのみ見つかります。`,
    listen: "各サーバーを次のように起動してください:",
    listenNote: "ネットワーク上のほかのマシンからも接続できるようになります。",
  },
};
