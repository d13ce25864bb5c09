/** The first visit. */
import type { welcome as English } from "../en/welcome.ts";

/** Japanese. */
export const welcome: typeof English = {
  firstRun: {
    title: "言語モデルを接続する",
    text:
      "今は内蔵のデモだけが返信しますが、これは言語モデルではありません。このマシンで動いているモデルを Parlor が探せます。",
    find: "モデルを探す",
    manual: "アドレスを入力",
    later: "後で",
  },

  welcome: {
    step: (at: number, of: number) => `${of} ステップ中 ${at}`,
    titles: { model: "返信するモデル", name: "あなたの名前", passkey: "この Parlor をパスキーで保護する" },
    modelText: "Parlor が話すには言語モデルが必要です。このマシンで動いているサーバーを探しています。",
    modelThere: (name: string) => `「${name}」が返信します。設定でいつでも変更できます。`,
    nameHint: "キャラクターやモデルがあなたを呼ぶ名前です。このサーバーと、モデルに送られる内容の中だけで使われます。",
    passkeyLocal:
      "このマシンではパスキーなしで使えます。ほかの場所から Parlor を開くときはパスキーが求められ、アドレスごとに作ります。このアドレスにも今作れます。",
    passkeyThere:
      "このアドレスはすでにパスキーで保護されています。ほかの端末は「設定」の「プライバシー」で追加できます。",
    goOn: "続ける",
    skip: "スキップ",
    start: "チャットを始める",
    container:
      "Parlor はコンテナの中で動いており、その中だけを探しています。外側のマシンを探すには、compose.yaml のようにこの変数を設定し、コンテナを起動し直してください。",
    elsewhere: (hosts: string) =>
      `Parlor は ${hosts} を探しました。そこのサーバーは、自分のマシン以外からの接続も受け付けるときだけ応答します。`,
    listen: "各サーバーは次のように起動します。",
    listenNote: "そのときは同じネットワークのほかのマシンからも接続できます。",
  },
};
