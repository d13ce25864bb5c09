/** Texts of the first visit. */
import type { setup as English } from "../en/setup.ts";

/** Japanese. */
export const setup: typeof English = {
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
  quickModel: {
    title: "または、モデルをダウンロード",
    text: (memory: string, disk: string) =>
      `このマシン（メモリ${memory}、空き容量${disk}）で動くモデルです。実行もParlorが行います。`,
    none: (memory: string, disk: string) =>
      `このマシン（メモリ${memory}、空き容量${disk}）では、Parlorの推奨モデルを実行できません。別のマシンのサーバーを使ってください。`,
    failed: "このマシン向けのモデルを確認できませんでした",
    levels: { fast: "高速", balanced: "バランス", best: "高品質" },
    memory: (size: string) => `メモリ${size}が必要`,
    speed: (words: string) => `毎秒約${words}語`,
    starting: "モデルを起動しています",
    start: "起動",
    download: "ダウンロード",
    gone: (name: string) => `${name}はハブにありません`,
    install: "モデルの実行にはllama-serverが必要です。Parlorが動いているマシンにインストールしてください：",
    check: "再確認",
    which: "使っているサーバー",
  },
};
