/** Texts of the general settings. */
import type { settings as English } from "../en/settings.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("ja");

/** Japanese. */
export const settings: typeof English = {
  settings: {
    search: "設定を検索",
    found: "一致する設定",
    foundNone: "一致する設定はありません。",
    foundCount: (n: number) => count(n, { other: "件の設定" }),
    title: "設定",
    sections: "項目",
    general: "一般",
    connections: "接続",
    about: "Parlor について",
    back: "チャットに戻る",
  },

  general: {
    displayName: "あなたの名前",
    displayNameHint: "キャラクターやモデルがあなたを呼ぶときの名前です。",
    chats: "チャット",
    sendOnEnter: "Enter で送信",
    sendOnEnterHint: "Shift+Enter で改行します。オフにすると逆になります。",
    autoTitle: "チャットに自動で名前を付ける",
    autoTitleHint: "モデルが空いているときにタイトルを考えさせます。",
    notify: "返信が完了したら通知する",
    notifyHint: "このデバイスで、Parlor がバックグラウンドにあるときに通知します。ブラウザーが一度だけ許可を求めます。",
    notifyRefused: "ブラウザーが通知をブロックしました。ブラウザーの設定でこのサイトの通知を許可してください。",
    notifyImpossible: "このブラウザーでは、HTTPS または localhost でのみ通知を使えます。",
    look: "外観",
    note: "これらの設定はすべてのデバイスに同期されます。",
    language: "言語",
    languageHint: "このページの表示言語です。モデルは、あなたが書いた言語で返信します。",
    languageAuto: "ブラウザーの設定に従う",
    theme: "テーマ",
    themes: { system: "システム", light: "ライト", dark: "ダーク" },
    size: "文字の大きさ",
    percent: (n: number) => `${n}%`,
    reading: "フォント",
    sans: "ゴシック体",
    serif: "明朝体",
    hue: "アクセントカラー",
    sample: "いろはにほへと ちりぬるを わかよたれそ つねならむ。夜は静かに更けていきます。",
  },
};
